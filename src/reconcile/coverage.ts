import { type Instant, latest } from './instant.ts';
import type { Window } from './record.ts';

/**
 * The coverage after `window` was read in full, or null when it does not move. It moves only when it reached the
 * start of the window, else the records between would never be read (rule 5.10), and it never moves back.
 * The caller must not ask for a filtered or incomplete run.
 */
export function advanceCoverage(coverage: Instant | null, window: Window): Instant | null {
  if (coverage === null) return window.to;
  return coverage >= window.from ? latest(coverage, window.to) : null;
}
