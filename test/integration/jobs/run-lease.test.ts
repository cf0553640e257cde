import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { configSchema } from '../../../src/config/schema.ts';
import { type ReconcileDeps, reconcileStep } from '../../../src/jobs/reconcile-window.ts';
import { TIMES } from '../../../src/jobs/times.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import type { Window } from '../../../src/reconcile/record.ts';
import { claimRun, createRun } from '../../../src/store/runs.ts';
import { ArraySide } from '../../support/array-side.ts';
import { NOON } from '../../support/records.ts';
import { storeForFile } from '../store/store.ts';

const store = storeForFile();
const CHUNKS = 12;
const CHUNK_MS = 200;
/** Shorter than all chunks together, longer than one of them. */
const LEASE_MS = 1_500;

class SlowSide extends ArraySide {
  override async *scan(window: Window, signal: AbortSignal) {
    await sleep(CHUNK_MS);
    yield* super.scan(window, signal);
  }
}

test('a run of many quick chunks keeps its lease to the end, and lets go of it then', async () => {
  const { db } = store;
  const side = { type: 'postgres', url: 'postgres://nowhere', table: 't', time: 'at' };
  const { reconciliations } = configSchema.parse({
    version: 1,
    reconciliations: {
      leased: { window: { chunk: '5m' }, source: side, downstream: side, key: ['no'], compare: {} },
    },
  });
  const { leased: config } = reconciliations;
  if (config === undefined) throw new Error('the config lost its reconciliation');
  const id = await createRun(db, {
    reconciliation: 'leased',
    revision: null,
    trigger: 'adhoc',
    mode: 'check',
    window: NOON,
    movesCoverage: false,
  });
  const leases: boolean[] = [];
  const deps: ReconcileDeps = {
    db,
    pair: {
      name: 'leased',
      config,
      zone: 'UTC',
      source: new SlowSide('a', []),
      downstream: new SlowSide('b', []),
    },
    look: { rules: {}, digestKey: 'k' },
    configRevision: null,
    logger: createLogger({ level: 'silent', redact: (text) => text }),
    times: { ...TIMES, runLease: LEASE_MS },
    checkpoint: async (name) => {
      if (name !== 'after-diff') return;
      const row = await db('run').where({ id }).first(db.raw('lease_until > clock_timestamp() as alive'));
      leases.push(row.alive);
    },
    onRead: () => undefined,
    onEnded: () => undefined,
  };
  const run = await claimRun(db, id, 'w1', LEASE_MS);
  if (run === null) throw new Error('the run was not free');
  await reconcileStep(deps, run, new AbortController().signal);
  expect(leases).toEqual(Array.from({ length: CHUNKS }, () => true));
  expect(await db('run').where({ id }).first('phase', 'lease_owner', 'lease_until')).toEqual({
    phase: 'concluding',
    lease_owner: null,
    lease_until: null,
  });
});
