import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createStore } from '../support/database.ts';
import { trueup, trueupJson, up } from '../support/e2e-cli.ts';
import { ordersConfig, writeConfig } from '../support/e2e-config.ts';
import { createOrders, type OrdersDatabase, startBookings } from '../support/e2e-orders.ts';

const stops: (() => Promise<void>)[] = [];
let dir: string;
let data: OrdersDatabase;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'trueup-e2e-cli-'));
  stops.push(() => rm(dir, { recursive: true, force: true }));
  data = await createOrders();
  stops.push(() => data.drop());
  await data.place([{ no: 'A-1' }, { no: 'A-2' }]);
  await data.book([{ no: 'A-1' }]);
});
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function configFile(config: Record<string, unknown>): Promise<string> {
  const file = await writeConfig(config);
  stops.push(() => file.remove());
  return file.path;
}

const postgres = (url: string) => ({
  type: 'postgres',
  url,
  table: 'orders',
  time: 'updated_at',
  fields: ['amount'],
});

describe('a config with ten mistakes', () => {
  const MISTAKES = [
    'timezone',
    'targets.gateway.watermark',
    'targets.gateway.timout',
    'reconciliations.orders.mode',
    'reconciliations.orders.schedule',
    'reconciliations.orders.window.lookback',
    'reconciliations.orders.source.url',
    'reconciliations.orders.downstream.target',
    'reconciliations.orders.downstream.lookup.path',
    'reconciliations.orders.compare.amount',
  ];
  const config = {
    version: 1,
    timezone: 'Mars/Olympus',
    targets: { gateway: { url: 'http://127.0.0.1:9', watermark: 0, timout: { answer: '2s' } } },
    reconciliations: {
      orders: {
        mode: 'repair',
        schedule: '61 * * * *',
        window: { lookback: '1hour' },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the config's own interpolation
        source: { ...postgres('x'), url: '${env:NO_SUCH_VARIABLE}' },
        downstream: {
          type: 'http',
          target: 'gatway',
          lookup: { path: 'orders' },
          key: { order_no: '/order_no' },
        },
        key: ['order_no'],
        compare: { amount: 'money' },
      },
    },
  };

  it.each(['check', 'up', 'doctor'])(
    'gets ten lines with their paths from %s, and starts nothing',
    async (name) => {
      const path = await configFile(config);
      const { code, stdout, stderr } = await trueup([name, '--config', path], { cwd: dir });
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      const lines = stderr.split('\n');
      expect(lines[0]).toBe(`${path} has 10 problems`);
      expect(lines).toHaveLength(1 + 2 * MISTAKES.length);
      for (const [index, mistake] of MISTAKES.entries()) {
        expect(lines[1 + 2 * index]).toMatch(new RegExp(`^  ${mistake}: .*\\(line \\d+, column \\d+\\)$`));
        // What to write instead.
        expect(lines[2 + 2 * index]).toMatch(/^ {6}\S/);
      }
      // No embedded server, no directory of its own.
      expect(await readdir(dir)).toEqual([]);
    },
  );
});

describe('doctor', () => {
  it('finds what is wrong without a worker, and nothing beside a running one', async () => {
    const store = await createStore();
    stops.push(() => store.drop());
    const api = await startBookings(data.pool, { dedupes: true });
    stops.push(() => api.close());
    const path = await configFile(
      ordersConfig({
        storeUrl: store.url,
        dataUrl: data.url,
        apiUrl: api.url,
        reconciliation: { schedule: '0 4 1 1 *' },
      }),
    );
    interface Finding {
      readonly check: string;
      readonly ok: boolean;
      readonly detail: string;
    }
    const alone = await trueupJson<Finding[]>(['doctor', '--config', path], {}, 4);
    expect(alone.filter((finding) => !finding.ok).map((finding) => finding.check)).toEqual([
      'workers',
      'schedule orders',
    ]);
    const { child } = await up(path);
    stops.push(() => child.stop());
    await child.waitForLine(/"event":"worker.started"/);
    const beside = await trueupJson<Finding[]>(['doctor', '--config', path]);
    expect(beside.filter((finding) => !finding.ok)).toEqual([]);
    expect(beside.map((finding) => finding.check)).toEqual(
      expect.arrayContaining(['store', 'store clock', 'replay', 'queue', 'workers', 'schedule orders']),
    );
  });
});

describe('every command', () => {
  it('shows an example in its help, and refuses what it does not know', async () => {
    const help = await trueup(['--help']);
    expect(help.code).toBe(0);
    const commands = [...help.stdout.matchAll(/^ {2}([a-z]+) /gm)].flatMap(([, name]) => name ?? []);
    expect(commands).toEqual(
      expect.arrayContaining([
        ...['init', 'check', 'up', 'worker', 'migrate', 'apply', 'doctor', 'demo', 'run', 'runs', 'diffs'],
        ...['diff', 'replay', 'resolve', 'fail', 'dismiss', 'hold', 'release', 'watermark'],
      ]),
    );
    for (const command of commands.filter((name) => name !== 'help')) {
      const { code, stdout } = await trueup([command, '--help']);
      expect({ command, code }).toEqual({ command, code: 0 });
      expect(stdout, command).toMatch(/Example:\n {2}.*trueup /);
    }
    const typo = await trueup(['chek']);
    expect(typo).toMatchObject({ code: 2, stderr: expect.stringContaining('check') });
  });
});
