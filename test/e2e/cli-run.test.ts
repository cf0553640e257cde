import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { start, trueup, trueupJson, up } from '../support/e2e-cli.ts';
import { ordersConfig, writeConfig } from '../support/e2e-config.ts';
import { orders } from '../support/e2e-orders.ts';
import { openShop, posts, type Shop, type ShopOptions } from '../support/e2e-shop.ts';
import { until } from '../support/wait.ts';

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const setUp = (options: ShopOptions = {}) => openShop(stops, options);

interface Report {
  readonly run: string;
  readonly verdict: string;
  readonly complete: boolean;
  readonly result: string;
  readonly reason: string | null;
  readonly counts: Record<string, number>;
  readonly diffs: { key: string[]; kind: string; fields: { field: string }[] }[];
  readonly compensations: Record<string, unknown>;
}

describe('run --mode check', () => {
  let shop: Shop;
  const WINDOW = ['--from', '2026-11-30T10:00', '--to', '2026-11-30T11:00'];

  beforeAll(async () => {
    shop = await setUp();
    const { pool } = shop.data;
    // Two sides with every kind of difference: see the counts below.
    await pool.query(`
      create table loose (order_no text, amount numeric(12, 2), trace_id text, updated_at timestamptz not null);
      insert into loose (order_no, amount, updated_at) select no, amount, '2026-11-30T10:30:00Z'
        from (values ('same', 1), ('missing', 2), ('wrong', 3), ('twice', 4), ('twice', 4)) v (no, amount);
      insert into loose values (null, 5, null, '2026-11-30T12:30:00Z'), ('whole', 5, null, '2026-11-30T12:30:00Z');
      insert into loose values ('too-late', 6, null, '2026-11-30T11:00:00Z');
      insert into bookings (order_no, amount, booked_at) select no, amount, '2026-11-30T10:30:00Z'
        from (values ('same', 1), ('wrong', 9), ('twice', 4), ('extra', 7)) v (no, amount);
      insert into bookings (order_no, amount, booked_at) values ('whole', 5, '2026-11-30T12:30:00Z')`);
    const file = await writeConfig(looseConfig(shop));
    stops.push(() => file.remove());
    shop = { ...shop, path: file.path };
  });

  it('prints one object that says everything about the run', async () => {
    const said = await trueup([
      'run',
      'orders',
      ...WINDOW,
      '--mode',
      'check',
      '--format',
      'json',
      '--config',
      shop.path,
    ]);
    expect(said.code).toBe(0);
    // Data alone on stdout, on one line.
    expect(said.stdout.split('\n')).toHaveLength(1);
    const report = JSON.parse(said.stdout);
    expect(report).toMatchObject({
      run: expect.stringMatching(/^\d+$/),
      reconciliation: 'orders',
      window: { from: '2026-11-30T10:00:00.000000Z', to: '2026-11-30T11:00:00.000000Z' },
      verdict: 'differ',
      complete: true,
      plan: { name: expect.stringMatching(/^(merge|lookup)$/), why: expect.any(String) },
      timings: { wallMs: expect.any(Number) },
      // A key that is there twice is counted as such.
      counts: {
        source: 5,
        downstream: 4,
        matched: 1,
        missing: 1,
        extra: 1,
        mismatched: 1,
        duplicate: 1,
        undecided: 0,
      },
    });
    const diffs = (report as Report).diffs.map(({ key, kind, fields }) => [
      kind,
      key,
      fields.map(({ field }) => field),
    ]);
    expect(diffs.sort()).toEqual([
      ['duplicate', ['twice'], expect.any(Array)],
      ['extra', ['extra'], []],
      ['mismatched', ['wrong'], ['amount']],
      ['missing', ['missing'], []],
    ]);
    // It only looked.
    expect(posts(shop.api)).toEqual([]);
  });

  it('tells a person the same in words', async () => {
    const said = await trueup(['run', 'orders', ...WINDOW, '--config', shop.path]);
    expect(said.code).toBe(0);
    expect(said.stdout).toMatch(/differ \(complete\)/);
    expect(said.stdout).toContain('missing 1, extra 1, mismatched 1, duplicate 1');
    expect(said.stdout).toContain('undecided 0');
  });

  it('ends with 3 when there are diffs and --fail-on-diff was asked for', async () => {
    const args = ['run', 'orders', ...WINDOW, '--fail-on-diff', '--config', shop.path];
    expect((await trueup(args)).code).toBe(3);
  });

  it('ends with 0 again, and still says differ, once a person has decided on every difference', async () => {
    const { path, data } = await setUp();
    await data.place(orders('known', 2));
    const config = ['--config', path];
    const args = ['run', 'orders', '--last', '1h', '--fail-on-diff', ...config];
    const first = await trueupJson<Report>(args, {}, 3);
    expect(first).toMatchObject({ verdict: 'differ', counts: { missing: 2, decided: 0 } });
    await trueupJson(['dismiss', '--where', 'kind=missing', '--yes', '--reason', 'test orders', ...config]);
    expect(await trueupJson<Report>(args)).toMatchObject({
      verdict: 'differ',
      reason: 'a person has decided on every difference',
      counts: { missing: 2, decided: 2 },
      // Nothing was scheduled yet.
      coveredTo: null,
      provenTo: null,
    });
    const shown = await trueup(['runs', 'orders', ...config]);
    expect(shown.stderr).toContain('orders: read up to -, nothing open before -');
  });

  it('counts a record whose key is null as undecided, which is never clean', async () => {
    const window = ['--from', '2026-11-30T12:00', '--to', '2026-11-30T13:00'];
    const report = await trueupJson<Report>(['run', 'orders', ...window, '--config', shop.path], {}, 6);
    expect(report).toMatchObject({
      verdict: 'undecided',
      reason: '1 records could not be decided',
      counts: { source: 2, matched: 1, undecided: 1 },
      diffs: [],
    });
  });

  it('ends with 0 and verdict match where both sides agree', async () => {
    const quiet = ['--from', '2026-11-29T10:00', '--to', '2026-11-29T11:00', '--fail-on-diff'];
    const report = await trueupJson<Report>(['run', 'orders', ...quiet, '--config', shop.path]);
    expect(report).toMatchObject({ verdict: 'match', complete: true, diffs: [] });
  });

  it.each([
    [
      'a reconciliation that is not there',
      ['run', 'ordres', ...WINDOW],
      /no reconciliation "ordres"[\s\S]*orders/,
    ],
    [
      'a window that ends before it begins',
      ['run', 'orders', '--from', '2026-11-30', '--to', '2026-11-29'],
      /before it begins/,
    ],
    ['no window', ['run', 'orders'], /--from or --last is missing/],
    ['a length that is none', ['run', 'orders', '--last', 'soon'], /"soon"/],
    [
      'a mode that is none',
      ['run', 'orders', ...WINDOW, '--mode', 'fix'],
      /no mode "fix"[\s\S]*check, plan, compensate/,
    ],
    ['a format that is none', ['run', 'orders', ...WINDOW, '--format', 'xml'], /no format "xml"/],
  ])('refuses %s with what to write instead', async (_, args, words) => {
    const said = await trueup([...args, '--config', shop.path]);
    expect(said).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(words) });
  });

  it('ends incomplete, with 6 and the reason, when a side cannot be read, and reports no diff from it', async () => {
    const file = await writeConfig({ ...looseConfig(shop, 'no_such_table') });
    stops.push(() => file.remove());
    const report = await trueupJson<Report>(['run', 'orders', ...WINDOW, '--config', file.path], {}, 6);
    expect(report).toMatchObject({ verdict: 'undecided', complete: false, result: 'incomplete', diffs: [] });
    expect(report.reason).toMatch(/source.*no_such_table/);
  });
});

function looseConfig(shop: Shop, table = 'loose'): Record<string, unknown> {
  const side = (name: string, time: string, fields: string[]) => ({
    type: 'postgres',
    url: shop.data.url,
    table: name,
    time,
    fields,
  });
  return ordersConfig({
    storeUrl: shop.storeUrl,
    dataUrl: shop.data.url,
    apiUrl: shop.api.url,
    reconciliation: {
      source: side(table, 'updated_at', ['amount']),
      downstream: side('bookings', 'booked_at', ['amount']),
    },
  });
}

describe('run --mode compensate', () => {
  it('without a server repairs under the watermark and ends with 0', async () => {
    // One a second.
    const { path, api, data } = await setUp({ target: { watermark: 60, idempotency: { dedupes: true } } });
    await data.place(orders('lost', 5));
    const report = await trueupJson<Report>([
      'run',
      'orders',
      '--last',
      '1h',
      '--mode',
      'compensate',
      '--config',
      path,
    ]);
    expect(report).toMatchObject({ verdict: 'differ', complete: true, counts: { missing: 5 } });
    expect(report.compensations).toMatchObject({ planned: 5, open: 0, verified: 5, escalated: 0 });
    expect([...(await data.effects()).values()]).toEqual([1, 1, 1, 1, 1]);
    const at = posts(api).map((request) => request.at);
    expect(at).toHaveLength(5);
    // Slots are 1004 ms apart, and a call starts at most 250 ms after its slot.
    const gaps = at.slice(1).map((moment, index) => moment - (at[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(700);
  });

  it('once more finds nothing to do', async () => {
    const { path, api, data } = await setUp({ target: { idempotency: { dedupes: true } } });
    await data.place(orders('lost', 1));
    const args = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path];
    await trueupJson<Report>(args);
    expect(await trueupJson<Report>(args)).toMatchObject({ verdict: 'match', diffs: [] });
    expect(posts(api)).toHaveLength(1);
  });

  it('ends with 4 when something needs a person', async () => {
    const { path, data } = await setUp({
      bookings: { dedupes: true, react: () => ({ do: 'answer', status: 422, body: { code: 'NO' } }) },
    });
    await data.place(orders('lost', 1));
    const args = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path];
    const report = await trueupJson<Report>(args, {}, 4);
    expect(report.compensations).toMatchObject({ planned: 1, escalated: 1 });
    // A later run plans nothing for it and sends nothing; the person is needed all the same, in mode check too.
    const again = await trueupJson<Report>(['run', 'orders', '--last', '1h', '--config', path], {}, 4);
    expect(again).toMatchObject({ needsPerson: 1, compensations: { planned: 0 } });
  });

  it('is safe beside a running server: nothing is sent twice', async () => {
    // The target ignores keys, so a call too many would be a row too many.
    const { path, api, data, storeUrl } = await setUp({
      bookings: { dedupes: false },
      target: { watermark: 1200, appliesWithin: '1s' },
    });
    await data.place(orders('lost', 60));
    const server = await up(path);
    stops.push(() => server.child.stop());
    const args = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path];
    const reports = await Promise.all([
      trueup([...args, '--format', 'json']),
      trueup([...args, '--format', 'json']),
    ]);
    expect(reports.map(({ code }) => code)).toEqual([0, 0]);
    const effects = await data.effects();
    expect(effects.size).toBe(60);
    expect(Math.max(...effects.values())).toBe(1);
    expect(posts(api)).toHaveLength(60);
    // Both worked: attempts of the server and of a command.
    const db = openDatabase(storeUrl, { applicationName: 'trueup-test' });
    try {
      const workers: { worker: string }[] = await db('attempt').distinct('worker');
      expect(workers.length).toBeGreaterThan(1);
    } finally {
      await db.destroy();
    }
  });

  it('stops on Ctrl-C with nothing lost: the next run takes up what is left', async () => {
    const { path, api, data } = await setUp({ target: { watermark: 60, idempotency: { dedupes: true } } });
    await data.place(orders('lost', 6));
    const args = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', path];
    const first = start([...args, '--format', 'json']);
    stops.push(() => first.stop());
    await until('two were sent', () => posts(api).length >= 2, { timeoutMs: 30_000 });
    first.kill('SIGINT');
    // Not all of it was done, and the code says so.
    expect(await first.exited).toEqual({ code: 6, signal: null });
    expect(posts(api).length).toBeLessThan(6);
    await trueupJson<Report>(args);
    await until('all were sent', async () => (await data.effects()).size === 6, { timeoutMs: 30_000 });
    expect(Math.max(...(await data.effects()).values())).toBe(1);
  });
});
