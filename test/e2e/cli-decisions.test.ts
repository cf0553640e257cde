import { hostname } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAudit, type StoredAuditEntry } from '../../src/store/audit.ts';
import { type Db, openDatabase } from '../../src/store/database.ts';
import { createStore } from '../support/database.ts';
import { trueup, trueupJson } from '../support/e2e-cli.ts';
import { type ConfigFile, ordersConfig, writeConfig } from '../support/e2e-config.ts';
import { type BookingsApi, createOrders, type OrdersDatabase, startBookings } from '../support/e2e-orders.ts';

/** What a person decides by command, and the record of it. No server runs here. */

const env = { TRUEUP_ACTOR: 'on-call' };
const stops: (() => Promise<void>)[] = [];
let data: OrdersDatabase;
let api: BookingsApi;
let db: Db;
let config: ConfigFile;
let values: Record<string, unknown>;

beforeAll(async () => {
  const store = await createStore();
  stops.push(() => store.drop());
  db = openDatabase(store.url, { applicationName: 'trueup-test' });
  stops.push(() => db.destroy());
  data = await createOrders();
  stops.push(() => data.drop());
  const names = 'replay resolve dismiss fail cancel again'.split(' ');
  await data.place(names.map((no) => ({ no })));
  api = await startBookings(data.pool, { dedupes: true });
  stops.push(() => api.close());
  values = ordersConfig({ storeUrl: store.url, dataUrl: data.url, apiUrl: api.url, read: 'table' });
  config = await writeConfig(values);
  stops.push(() => config.remove());
  const report = await trueupJson<{ counts: { missing: number } }>(args('run', 'orders', '--last', '1h'));
  expect(report.counts.missing).toBe(names.length);
}, 90_000);
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

const args = (...words: readonly string[]) => [...words, '--config', config.path];
const json = <T>(...words: readonly string[]) => trueupJson<T>(args(...words), { env });
const say = (...words: readonly string[]) => trueup(args(...words), { env });

interface Diff {
  readonly id: string;
  readonly state: string;
  readonly compensation: { readonly state: string } | null;
}

async function diffOf(no: string): Promise<Diff> {
  const [diff] = await json<Diff[]>('diffs', '--where', `key=${no}`);
  if (diff === undefined) throw new Error(`no open diff of ${no}`);
  return diff;
}

async function stateOf(id: string): Promise<string> {
  return (await db('diff').where({ id }).first('state')).state;
}

async function audited(subject: string): Promise<StoredAuditEntry[]> {
  return (await listAudit(db, { subject }, { limit: 50 })).reverse();
}

const byUs = (action: string, reason: string | null) => ({
  actor: 'on-call',
  origin: `cli ${hostname()}`,
  action,
  reason,
});

describe('a decision on a diff', () => {
  it('resolve closes it as settled by hand', async () => {
    const { id } = await diffOf('resolve');
    expect(await json('resolve', id, '--reason', 'refunded by phone')).toEqual([
      { id, done: true, what: 'resolved' },
    ]);
    expect(await stateOf(id)).toBe('resolved');
    expect(await audited(`diff ${id}`)).toMatchObject([
      {
        ...byUs('diff.resolved', 'refunded by phone'),
        before: { state: 'open' },
        after: { state: 'resolved' },
      },
    ]);
    // A second time there is nothing left to decide, and that is no success.
    const again = await say('resolve', id, '--reason', 'twice');
    expect(again).toMatchObject({ code: 1, stdout: expect.stringContaining('no open diff') });
    expect(await audited(`diff ${id}`)).toHaveLength(1);
  });

  it('dismiss takes a filter, says how many it found, and changes nothing without --yes', async () => {
    const { id } = await diffOf('dismiss');
    const where = ['dismiss', '--where', 'key=dismiss', '--reason', 'test order', '--for', '30d'];
    const asked = await say(...where);
    expect(asked).toMatchObject({ code: 2, stdout: '' });
    expect(asked.stderr).toContain('1 diff found with key=dismiss');
    expect(asked.stderr).toContain('--yes');
    expect(await stateOf(id)).toBe('open');
    expect(await json(...where, '--yes')).toEqual([{ id, done: true, what: 'dismissed' }]);
    expect(await stateOf(id)).toBe('dismissed');
    const { days } = await db('diff')
      .where({ id })
      .first(db.raw(`extract(epoch from dismissed_until - closed_at)::float8 / 86400 as days`));
    expect(days).toBeCloseTo(30, 2);
    expect(await audited(`diff ${id}`)).toMatchObject([byUs('diff.dismissed', 'test order')]);
  });

  it('fail keeps it in sight as not repairable', async () => {
    const { id } = await diffOf('fail');
    expect(await json('fail', id, '--reason', 'customer gone')).toEqual([{ id, done: true, what: 'failed' }]);
    expect(await stateOf(id)).toBe('failed');
    expect((await diffOf('fail')).id).toBe(id);
    expect(await audited(`diff ${id}`)).toMatchObject([byUs('diff.failed', 'customer gone')]);
  });

  it('replay plans a repair, hold and release stop it and let it go, and cancel ends it before it is sent', async () => {
    const { id } = await diffOf('replay');
    expect(await json('replay', id, '--reason', 'gateway is back')).toEqual([
      { id, done: true, what: 'planned' },
    ]);
    expect((await diffOf('replay')).compensation?.state).toBe('planned');
    // It is planned already: no second one.
    expect((await say('replay', id, '--reason', 'impatient')).stdout).toContain('planned already');
    const why = ['--reason', 'asking first'];
    expect(await json('hold', '--diff', id, ...why)).toEqual([{ id, done: true, what: 'repair on hold' }]);
    expect((await diffOf('replay')).compensation?.state).toBe('held');
    expect((await say('hold', 'bookings', '--diff', id, ...why)).code).toBe(2);
    expect((await say('release', ...why)).code).toBe(2);
    expect(await json('release', '--diff', id, ...why)).toEqual([
      { id, done: true, what: 'repair released' },
    ]);
    expect((await diffOf('replay')).compensation?.state).toBe('planned');
    expect((await say('release', '--diff', id, ...why)).stdout).toContain('no repair of it is on hold');
    const cancelled = await json('cancel', id, '--reason', 'wrong window');
    expect(cancelled).toEqual([{ id, done: true, what: 'repairs cancelled' }]);
    expect(await diffOf('replay')).toMatchObject({ state: 'open', compensation: { state: 'cancelled' } });
    expect(await audited(`diff ${id}`)).toMatchObject([
      byUs('diff.replay', 'gateway is back'),
      byUs('diff.hold', 'asking first'),
      byUs('diff.release', 'asking first'),
      byUs('diff.cancel', 'wrong window'),
    ]);
    expect(api.server.requests).toEqual([]);
  });

  it('replay of a diff that has healed closes it without a send', async () => {
    const { id } = await diffOf('again');
    await data.book([{ no: 'again' }]);
    expect(await json('replay', id, '--reason', 'once more')).toEqual([
      { id, done: true, what: 'healed already; nothing to send' },
    ]);
    expect(await stateOf(id)).toBe('healed');
    expect(api.server.requests).toEqual([]);
  });

  it.each([
    ['without a reason', ['resolve', '1'], /--reason/],
    ['with a reason that says nothing', ['resolve', '1', '--reason', '  '], /--reason[\s\S]*says nothing/],
    ['without saying which', ['resolve', '--reason', 'x'], /which diffs to resolve/],
    ['by ids and by a filter', ['fail', '1', '--where', 'kind=extra', '--reason', 'x'], /not both/],
    ['by what is no id', ['fail', 'A-1', '--reason', 'x'], /"A-1" is no diff id/],
    [
      'by a filter that does not exist',
      ['fail', '--where', 'colour=red', '--reason', 'x'],
      /no "colour"[\s\S]*kind=/,
    ],
    ['for a time that is none', ['dismiss', '1', '--for', 'ever', '--reason', 'x'], /"ever" is no duration/],
  ])('is refused %s, with what to write instead', async (_, words, hint) => {
    expect(await say(...words)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(hint) });
  });

  it('diff shows one whole, and says where to look when there is none', async () => {
    const { id } = await diffOf('cancel');
    const shown = await say('diff', id);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/key +cancel/);
    expect(shown.stdout).toContain('opened');
    expect(await json('diff', id)).toMatchObject({
      diff: { id, key: ['cancel'] },
      timeline: expect.any(Array),
    });
    expect(await say('diff', '999999')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no diff 999999[\s\S]*trueup diffs/),
    });
  });
});

describe('a decision on a target', () => {
  const subject = 'target bookings';
  const since = async () => (await audited(subject)).length;

  it('hold and release', async () => {
    const before = await since();
    expect(await json('hold', 'bookings', '--reason', 'they asked us to wait')).toEqual({
      target: 'bookings',
      held: 'they asked us to wait',
    });
    expect(await json('watermark', 'bookings')).toMatchObject({ held: 'they asked us to wait' });
    expect(await json('release', 'bookings', '--reason', 'they are well')).toEqual({ released: 'bookings' });
    expect(await json('watermark', 'bookings')).toMatchObject({ held: null });
    expect((await audited(subject)).slice(before)).toMatchObject([
      byUs('target.hold', 'they asked us to wait'),
      byUs('target.release', 'they are well'),
    ]);
    const again = await say('release', 'bookings', '--reason', 'again');
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('not on hold') });
  });

  it('watermark shows, lowers for a while and clears', async () => {
    const before = await since();
    expect(await json('watermark', 'bookings')).toMatchObject({ ceiling: 100, override: null, limit: 100 });
    const lowered = await json('watermark', 'bookings', '50', '--for', '2h', '--reason', 'it sweats');
    expect(lowered).toMatchObject({ ceiling: 100, override: 50, limit: 50, why: 'override' });
    const cleared = await json('watermark', 'bookings', '--clear', '--reason', 'it is well');
    expect(cleared).toMatchObject({ ceiling: 100, override: null, limit: 100, why: 'ceiling' });
    expect((await audited(subject)).slice(before)).toMatchObject([
      { ...byUs('target.watermark', 'it sweats'), before: { override: null }, after: { override: 50 } },
      { ...byUs('target.watermark', 'it is well'), before: { override: 50 }, after: { override: null } },
    ]);
  });

  it.each([
    [
      'a watermark above the ceiling',
      ['watermark', 'bookings', '101', '--reason', 'x'],
      /ceiling of 100[\s\S]*up to 100/,
    ],
    ['a watermark of nothing', ['watermark', 'bookings', '0', '--reason', 'x'], /no whole number above 0/],
    ['a change without a reason', ['watermark', 'bookings', '50'], /--reason/],
    [
      'a target that is not there',
      ['hold', 'gateway', '--reason', 'x'],
      /no target "gateway"[\s\S]*bookings/,
    ],
  ])('refuses %s', async (_, words, hint) => {
    const before = await since();
    expect(await say(...words)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(hint) });
    expect(await since()).toBe(before);
  });
});

describe('a run that the guard holds', () => {
  const orders = () => (values['reconciliations'] as { orders: Record<string, unknown> }).orders;
  let guarded: ConfigFile;

  beforeAll(async () => {
    guarded = await writeConfig({
      ...values,
      reconciliations: { orders: { ...orders(), guard: { maxDiffs: 0 } } },
    });
    stops.push(() => guarded.remove());
  });

  async function heldRun(): Promise<string> {
    const words = ['run', 'orders', '--last', '1h', '--mode', 'compensate', '--config', guarded.path];
    const report = await trueupJson<{ run: string; result: string }>(words, { env }, 4);
    expect(report.result).toBe('held');
    return report.run;
  }

  it('is released by its id, with a reason', async () => {
    const run = await heldRun();
    expect(await json('release', run, '--reason', 'checked by hand')).toEqual({ released: run });
    expect((await audited(`run ${run}`)).at(-1)).toMatchObject({
      ...byUs('run.release', 'checked by hand'),
      before: { phase: 'held' },
      after: { phase: 'rechecking' },
    });
    // It would now look again and plan its repairs; here it is ended.
    expect(await json('discard', run, '--reason', 'enough')).toEqual({ discarded: run });
  });

  it('is discarded, and its diffs stay open and unrepaired', async () => {
    const run = await heldRun();
    expect(await json('discard', run, '--reason', 'the replica was behind')).toEqual({ discarded: run });
    expect((await audited(`run ${run}`)).at(-1)).toMatchObject(byUs('run.discard', 'the replica was behind'));
    const [row] = await db('run').where({ id: run }).select('phase', 'result');
    expect(row).toEqual({ phase: 'done', result: 'discarded' });
    expect((await diffOf('cancel')).state).toBe('open');
    const again = await say('discard', run, '--reason', 'again');
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('not done') });
    expect(api.server.requests).toEqual([]);
  });

  it('is on record from its beginning', async () => {
    const run = await heldRun();
    expect(await audited(`run ${run}`)).toMatchObject([
      { ...byUs('run.create', null), after: { reconciliation: 'orders', mode: 'compensate' } },
    ]);
    const runs = await json<{ id: string; phase: string }[]>('runs', 'orders', '--limit', '1');
    expect(runs).toMatchObject([{ id: run, phase: 'held' }]);
  });
});

describe('apply', () => {
  it('stores a config as a revision and makes it the active one, once', async () => {
    const first = await json<{ revision: number; changed: boolean }>('apply');
    const second = await json<{ revision: number; changed: boolean }>('apply');
    expect(second).toMatchObject({ revision: first.revision, changed: false });
    expect(await db('meta').first('active_revision')).toEqual({ active_revision: first.revision });
  });
});
