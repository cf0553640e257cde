import { configSchema } from '../../src/config/schema.ts';
import type { Pair } from '../../src/jobs/pair.ts';
import { type ReconcileDeps, reconcileStep } from '../../src/jobs/reconcile-window.ts';
import { TIMES } from '../../src/jobs/times.ts';
import { createLogger } from '../../src/observe/logger.ts';
import type { SideRecord } from '../../src/reconcile/record.ts';
import type { Db } from '../../src/store/database.ts';
import { listDiffs } from '../../src/store/list-diffs.ts';
import { type RunDetail, readRun } from '../../src/store/list-runs.ts';
import { claimRun, createRun, type NewRun } from '../../src/store/runs.ts';
import { ArraySide } from './array-side.ts';
import { at, NOON, record } from './records.ts';
import { until } from './wait.ts';

/** A reconciliation over two arrays that a test owns, with runs that are stepped in this process on a real store. */
export interface RunFixture {
  readonly name: string;
  readonly pair: Pair;
  readonly source: ArraySide;
  readonly downstream: ArraySide;
  readonly deps: ReconcileDeps;
  /** A run over the hour after noon, until it is done or on hold. */
  run(options?: Partial<NewRun>): Promise<RunDetail>;
  /** Steps a run until it is done or on hold. */
  step(id: string): Promise<RunDetail>;
  /** State of each diff, newest last, by the first part of its key. */
  diffs(): Promise<Record<string, string[]>>;
}

const DIGEST_KEY = 'k';

/** A record of these sides, stamped between noon and one o'clock. */
export const row = (no: string, state = 'PAID', time = at('12:30')): SideRecord =>
  record(no, { state }, time);

export const rows = (prefix: string, count: number, state = 'PAID'): SideRecord[] =>
  Array.from({ length: count }, (_, i) => row(`${prefix}-${String(i).padStart(5, '0')}`, state));

/** `missing` is repaired, everything else reported, unless `config` says otherwise. */
export function runFixture(db: Db, name: string, config: object = {}): RunFixture {
  const side = { type: 'postgres', url: 'postgres://nowhere', table: 't', time: 'at' };
  const action = { type: 'http', path: '/orders/{key}', body: { state: '{source.state}' } };
  const { reconciliations } = configSchema.parse({
    version: 1,
    reconciliations: {
      [name]: {
        source: side,
        downstream: side,
        key: ['no'],
        compare: { state: 'text' },
        recheck: { delay: '1ms' },
        // The records are of a fixed day.
        maxAge: '36500d',
        repair: { missing: { target: 'gateway', action } },
        ...config,
      },
    },
  });
  const parsed = reconciliations[name];
  if (parsed === undefined) throw new Error('the config lost its reconciliation');
  const source = new ArraySide('source', []);
  const downstream = new ArraySide('downstream', []);
  const pair: Pair = { name, config: parsed, zone: 'UTC', source, downstream };
  const deps: ReconcileDeps = {
    db,
    pair,
    look: { rules: parsed.compare, digestKey: DIGEST_KEY },
    configRevision: null,
    logger: createLogger({ level: 'silent', redact: (text) => text }),
    times: TIMES,
    checkpoint: async () => undefined,
    onRead: () => undefined,
    onEnded: () => undefined,
  };
  const step = async (id: string): Promise<RunDetail> => {
    const ended = await until(`run ${id} is done or on hold`, async () => {
      const claimed = await claimRun(db, id, 'test', 60_000);
      if (claimed !== null) await reconcileStep(deps, claimed, new AbortController().signal);
      const run = await readRun(db, id);
      return run?.phase === 'done' || run?.phase === 'held' ? run : null;
    });
    if (ended === null) throw new Error(`run ${id} is gone`);
    return ended;
  };
  return {
    name,
    pair,
    source,
    downstream,
    deps,
    step,
    async run(options = {}) {
      const id = await createRun(db, {
        reconciliation: name,
        revision: null,
        trigger: 'schedule',
        mode: 'check',
        window: NOON,
        movesCoverage: false,
        ...options,
      });
      return step(id);
    },
    async diffs() {
      const found: Record<string, string[]> = {};
      for (const diff of (await listDiffs(db, { reconciliation: name }, { limit: 1000 })).reverse()) {
        const no = diff.key[0] ?? '';
        found[no] = [...(found[no] ?? []), diff.state];
      }
      return found;
    },
  };
}
