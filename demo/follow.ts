import { setTimeout as sleep } from 'node:timers/promises';
import { type RunReport, tellsOfEscalation } from './check.ts';
import type { GatewayStats } from './gateway.ts';
import type { Product } from './product.ts';
import type { Progress } from './progress.ts';

const GLANCE_MS = 1_000;
/** Asking for the runs starts a process, so it is done less often. */
const RUNS_MS = 3_000;
/** Alerts are written with the state change and delivered a moment later. */
const ALERT_MS = 15_000;

export interface Followed {
  readonly product: Product;
  readonly names: readonly string[];
  readonly gatewayUrl: string;
  readonly chatUrl: string;
  readonly perMinute: number;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
}

/** Watches until every compensation is finished. Throws what was still open at the deadline. */
export async function follow(demo: Followed): Promise<readonly RunReport[]> {
  let runs: readonly RunReport[] = [];
  let askedAt = performance.now();
  while (performance.now() < demo.deadline) {
    await sleep(GLANCE_MS, undefined, { signal: demo.signal });
    demo.progress.figures(await glance(demo, runs));
    if (performance.now() - askedAt < RUNS_MS) continue;
    runs = await demo.product.runs();
    askedAt = performance.now();
    for (const run of runs) {
      const stopped = run.phase === 'held' ? 'held' : run.result;
      if (stopped !== null && stopped !== 'complete')
        throw new Error(`the run of ${run.reconciliation} is ${stopped}`);
    }
    if (demo.names.every((name) => isFinished(runs.find((run) => run.reconciliation === name)))) return runs;
  }
  throw new Error(`not finished in time: ${stillOpen(demo.names, runs)}`);
}

/** What the chat has got, once it tells of the escalated payments or a quarter of a minute has passed. */
export async function alertsOf(demo: Pick<Followed, 'chatUrl' | 'signal'>): Promise<readonly unknown[]> {
  const until = performance.now() + ALERT_MS;
  for (;;) {
    const messages = (await getJson(`${demo.chatUrl}/alerts`, demo.signal)) as unknown[];
    if (messages.some(tellsOfEscalation) || performance.now() > until) return messages;
    await sleep(250, undefined, { signal: demo.signal });
  }
}

function isFinished(run: RunReport | undefined): boolean {
  return run !== undefined && run.result !== null && run.compensations.open === 0;
}

function stillOpen(names: readonly string[], runs: readonly RunReport[]): string {
  return names
    .map((name) => {
      const run = runs.find((candidate) => candidate.reconciliation === name);
      if (!run) return `${name} has no run`;
      if (run.result === null) return `${name} is still being compared`;
      return `${name} has ${run.compensations.open} open of ${run.compensations.planned} compensations`;
    })
    .join('; ');
}

async function glance(demo: Followed, runs: readonly RunReport[]): Promise<string> {
  const [metrics, stats] = await Promise.all([
    demo.product.metrics(),
    getJson(`${demo.gatewayUrl}/stats`, demo.signal) as Promise<GatewayStats>,
  ]);
  const figure = (name: string) => String(metrics.get(name) ?? '-');
  const { error = 0, slow = 0 } = stats.outcomes;
  const ended = runs.reduce((so, { compensations: c }) => so + c.verified + c.healed + c.escalated, 0);
  return [
    `open diffs ${figure('trueup_diffs_open')}`,
    `backlog ${figure('trueup_backlog')}`,
    `calls ${stats.calls}, in 60 s ${stats.inLastMinute}/${demo.perMinute}`,
    `errors ${error}, lost answers ${slow}`,
    `ended ${ended}`,
  ].join(' | ');
}

async function getJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.json();
}
