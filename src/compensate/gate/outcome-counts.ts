/** Outcomes of one second: [second since the epoch, all, failures of the target, slow answers]. Small as JSON. */
export type Bucket = readonly [second: number, total: number, failed: number, slow: number];

/** Seconds that are remembered. */
const KEPT_S = 60;

/** The buckets with one more outcome; buckets older than 60 s are dropped. */
export function remember(
  buckets: readonly Bucket[],
  nowMs: number,
  outcome: { readonly failed: boolean; readonly slow: boolean },
): readonly Bucket[] {
  const second = Math.floor(nowMs / 1000);
  // Buckets from the future are left over from a clock that was moved back.
  const kept = buckets.filter(([at]) => at > second - KEPT_S && at <= second);
  const last = kept.at(-1);
  const [, total, failed, slow] = last?.[0] === second ? last : [second, 0, 0, 0];
  const older = last?.[0] === second ? kept.slice(0, -1) : kept;
  return [...older, [second, total + 1, failed + (outcome.failed ? 1 : 0), slow + (outcome.slow ? 1 : 0)]];
}

/** The outcomes of the last `seconds` seconds, the running one included. */
export function countIn(
  buckets: readonly Bucket[],
  nowMs: number,
  seconds: number,
): { readonly total: number; readonly failed: number; readonly slow: number } {
  const from = Math.floor(nowMs / 1000) - seconds;
  const recent = buckets.filter(([at]) => at > from);
  const sum = (pick: (bucket: Bucket) => number) => recent.reduce((all, bucket) => all + pick(bucket), 0);
  return { total: sum((b) => b[1]), failed: sum((b) => b[2]), slow: sum((b) => b[3]) };
}
