import { IANAZone } from 'luxon';
import type { CrossProblem } from '../cross-problem.ts';
import { nearest } from '../nearest.ts';
import type { Path } from '../path.ts';

/** A zone must be an IANA name. Fixed offsets are refused: they know no daylight saving, and Node 20 does not read them. */
export function checkZone(path: Path, zone: string | undefined): CrossProblem[] {
  if (zone === undefined || (/^[A-Za-z]/.test(zone) && IANAZone.isValidZone(zone))) return [];
  const near = nearest(zone, Intl.supportedValuesOf('timeZone'));
  const hint = near === undefined ? 'write one such as UTC or Europe/Berlin' : `did you mean "${near}"?`;
  return [{ path, predicate: 'is no IANA time zone', hint, showsValue: true }];
}
