// Reads the demo's JSON from standard input and checks the figures that the demo promises.
import { readFileSync } from 'node:fs';

const result = JSON.parse(readFileSync(0, 'utf8'));
const payments = result.reconciliations.find(({ name }) => name === 'payments');
const warehouse = result.reconciliations.find(({ name }) => name === 'warehouse');
const expectations = [
  ['payments missing', payments.counts.missing, 600],
  ['payments mismatched', payments.counts.mismatched, 60],
  ['payments extra', payments.counts.extra, 5],
  ['warehouse missing', warehouse.counts.missing, 50],
  ['doubled effects', result.effects.doubled, 0],
  ['escalated', result.compensations.escalated, 25],
  [
    'planned = verified + healed + escalated',
    result.compensations.planned,
    result.compensations.verified + result.compensations.healed + result.compensations.escalated,
  ],
];
const bounds = [
  ['sends in any 60 s within the watermark', result.watermark.maxSendsIn60s <= result.watermark.perMinute],
  ['95 % of the watermark used', result.watermark.usedShare >= 0.95],
  ['at least one alert sent', result.alerts.sent >= 1],
];
const wrong = [
  ...expectations
    .filter(([, found, expected]) => found !== expected)
    .map(([what, found, expected]) => `${what}: ${found}, not ${expected}`),
  ...bounds.filter(([, holds]) => !holds).map(([what]) => `not so: ${what}`),
];
console.log(JSON.stringify(result));
if (wrong.length > 0) {
  console.error(wrong.join('\n'));
  process.exit(1);
}
