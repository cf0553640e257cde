import type { App } from '../../src/app.ts';
import { planFindings } from '../../src/jobs/plan-findings.ts';
import { lookBoth } from '../../src/reconcile/look.ts';
import { type Key, keyText } from '../../src/reconcile/record.ts';
import { promotePlanned } from '../../src/store/dispatchable.ts';
import { claimRun, createRun, finishRun, NO_COUNTS } from '../../src/store/runs.ts';

/**
 * Puts repairs of these keys into the ledger as a run would that found them, without a worker: one that looks and
 * plans, in one transaction. They are `planned` then, or, where asked, `ready`. Gives the run's id.
 */
export async function planRepairs(
  app: App,
  reconciliation: string,
  keys: readonly Key[],
  state: 'planned' | 'ready' = 'planned',
): Promise<string> {
  const { db } = app;
  const pair = app.pairs.get(reconciliation);
  if (pair === undefined) throw new Error(`no reconciliation ${reconciliation}`);
  const verdicts = await lookBoth(
    keys,
    pair.source,
    pair.downstream,
    app.look(pair),
    AbortSignal.timeout(30_000),
  );
  const findings = keys.map((key) => {
    const verdict = verdicts.get(keyText(key));
    if (verdict?.verdict !== 'differs') throw new Error(`${keyText(key)} does not differ`);
    return verdict.finding;
  });
  const { configRevision } = app;
  return db.transaction(async (trx) => {
    const id = await createRun(trx, {
      reconciliation,
      revision: configRevision,
      trigger: 'adhoc',
      mode: 'compensate',
      window: null,
      movesCoverage: false,
    });
    const run = await claimRun(trx, id, 'test', 60_000);
    if (run === null) throw new Error(`run ${id} cannot be claimed`);
    await planFindings(trx, { run, pair, configRevision, pages: pagesOf(findings), plan: true });
    await finishRun(trx, run, { result: 'complete', verdict: 'differ', reason: null, counts: NO_COUNTS });
    if (state === 'ready') await promotePlanned(trx, keys.length);
    return id;
  });
}

/** As a run reads them. */
function pagesOf<T>(items: readonly T[], size = 500): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    items.slice(i * size, (i + 1) * size),
  );
}

/** Makes the repairs of a run due retries: each has one attempt behind it that failed. */
export async function failOnce(app: App, runId: string): Promise<void> {
  await app.db.transaction(async (trx) => {
    const ours = () => trx('compensation').where({ run_id: runId });
    await ours().update({ state: 'ready' });
    await ours().update({ state: 'queued', ring: 1 });
    await ours().update({ state: 'sending', attempt_number: 1 });
    await trx.raw(
      `insert into attempt (compensation_id, number, target, worker, slot_at, deadline, started_at, ended_at, outcome, error_code)
       select id, 1, target, 'test', now(), now(), now(), now(), 'retryable', 'http-500' from compensation where run_id = ?`,
      [runId],
    );
    const sent = trx.raw('clock_timestamp()');
    await ours().update({
      state: 'retrying',
      attempts: 1,
      ring: 1,
      due_at: sent,
      first_sent_at: sent,
      last_sent_at: sent,
    });
  });
}
