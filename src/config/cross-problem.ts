import type { Path } from './path.ts';

/** What a cross-field check found in a config that has the right shape. */
export interface CrossProblem {
  readonly path: Path;
  /** Said about the value at `path` when `showsValue`, else about the place: `is no target`. */
  readonly predicate: string;
  readonly hint: string;
  readonly showsValue?: true;
  /** Other places the conclusion rests on: it is not drawn while one of them is broken. */
  readonly reads?: readonly Path[];
}
