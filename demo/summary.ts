import pc from 'picocolors';
import type { Report } from './check.ts';

/** The figures of a finished demo for a person. `color` false gives plain text. */
export function summaryOf(report: Report, color: boolean): string {
  const c = pc.createColors(color);
  const { compensations: sums, effects, watermark } = report;
  const perTarget = Object.entries(watermark.targets)
    .map(([name, most]) => `${name} ${most}`)
    .join(', ');
  const lines = [
    '',
    c.bold('What was found'),
    ...report.reconciliations.map(
      ({ name, counts }) =>
        `  ${name.padEnd(10)} ${counts.source} records: ${counts.missing} missing, ${counts.mismatched} mismatched, ` +
        `${counts.extra} extra, ${counts.duplicate} duplicate, ${counts.undecided} undecided; ` +
        `${counts.healed} had only been on their way`,
    ),
    c.bold('What was done about it'),
    `  ${sums.planned} planned, ${sums.sent} sent, ${sums.verified} verified, ` +
      `${sums.healed} healed by themselves and not sent, ${sums.escalated} escalated`,
    `  of the escalated ${report.refused.length} were refused and ${report.notTaken.length} accepted but never written`,
    c.bold('What the systems themselves wrote down'),
    `  ${effects.applied} effects, ${effects.doubled} of them doubled`,
    `  most sends in any 60 s: ${watermark.maxSendsIn60s} of ${watermark.perMinute} allowed (${perTarget})`,
    `  ${report.alerts.sent} alerts reached the chat`,
    '',
    report.failures.length === 0
      ? c.green(`All as planted, in ${report.seconds} s.`)
      : c.red(`${report.failures.length} expectations were not met:`),
    ...report.failures.map((failure) => `  - ${failure}`),
  ];
  return lines.join('\n');
}

/** Where to look next. While the demo serves, its commands can be asked. */
export function nextSteps(at: {
  serve: boolean;
  envFile: string;
  logFile: string;
  httpPort: number;
}): string {
  if (!at.serve) {
    return [
      '',
      'Where to look next',
      `  ${at.logFile}   what trueup logged`,
      '  config/demo.yaml   the configuration that was used',
      '  npm run demo -- --serve   the same, kept running, with commands to try',
      '  config/trueup.yaml and npm start   your own systems',
    ].join('\n');
  }
  const trueup = 'node dist/cli/main.js';
  return [
    '',
    'Everything is still running; Ctrl-C ends it. In another terminal, in this directory:',
    `  . ${at.envFile}`,
    `  ${trueup} runs --config config/demo.yaml`,
    `  ${trueup} diffs --config config/demo.yaml`,
    `  ${trueup} watermark gateway 60 --for 10m --config config/demo.yaml`,
    `  curl http://127.0.0.1:${at.httpPort}/metrics`,
    `  ${at.logFile}   what trueup logs`,
  ].join('\n');
}
