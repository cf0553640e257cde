/** The most arrivals in any half-open window, from the moments of arrival. */
export function fullestWindow(at: readonly number[], windowMs: number): number {
  const sorted = [...at].sort((a, b) => a - b);
  let most = 0;
  let first = 0;
  for (const [index, moment] of sorted.entries()) {
    while (moment - (sorted[first] ?? 0) >= windowMs) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}
