import { ESCALATION_REASONS } from '../compensate/state.ts';
import { knownNames } from '../config/known-names.ts';
import { EXIT, TrueupError } from '../error.ts';
import type { DiffState } from '../store/diffs.ts';
import type { DiffFilters } from '../store/list-diffs.ts';
import { rowId } from '../store/row-id.ts';

export const WHERE_HELP =
  'reconciliation=NAME,kind=missing,state=open,reason=refused,run=12,key=A1 (all must hold)';

const KINDS = ['missing', 'extra', 'mismatched', 'duplicate'] as const;
const STATES: readonly DiffState[] = ['open', 'verified', 'healed', 'resolved', 'failed', 'dismissed'];

/** Reads `--where`. Without a state, the diffs that still need something: open and failed. */
export function diffFilters(where: string | undefined): DiffFilters {
  let filters: DiffFilters = { states: ['open', 'failed'] };
  const seen = new Set<string>();
  // A comma within brackets belongs to a key.
  for (const part of where?.split(/,(?![^[]*\])/) ?? []) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    const value = part.slice(at + 1).trim();
    if (at < 1 || value === '') throw usage(`"${part}" is no condition`, `write ${WHERE_HELP}`);
    if (seen.has(name))
      throw usage(`"${name}" is there twice, and all conditions must hold`, 'leave one out');
    seen.add(name);
    filters = { ...filters, ...condition(name, value) };
  }
  return filters;
}

function condition(name: string, value: string): DiffFilters {
  switch (name) {
    case 'reconciliation':
      return { reconciliation: value };
    case 'run':
      return { runId: rowId(value) };
    case 'key':
      return {
        key: value.startsWith('[') ? keyOf(value) : value.split('/').map((part) => part.trim()),
      };
    case 'kind':
      return { kinds: [oneOf(KINDS, value, name)] };
    case 'state':
      return { states: [oneOf(STATES, value, name)] };
    case 'reason':
      return { escalation: oneOf(ESCALATION_REASONS, value, name) };
    default:
      throw usage(`diffs have no "${name}"`, `write ${WHERE_HELP}`);
  }
}

function oneOf<T extends string>(known: readonly T[], value: string, name: string): T {
  const found = known.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  throw usage(`${name} "${value}" is unknown`, knownNames(value, known, 'words'));
}

/** A key as JSON, for parts that hold what separates conditions or parts. */
function keyOf(text: string): readonly string[] {
  try {
    const key: unknown = JSON.parse(text);
    if (Array.isArray(key) && key.every((part) => typeof part === 'string')) return key;
  } catch {
    // Said below.
  }
  throw usage(
    `key ${text} is no list of texts`,
    'write key=A1, key=A1/2 for a key of two columns, or key=["A1","2"]',
  );
}

function usage(message: string, hint: string): TrueupError {
  return new TrueupError('TRU_USAGE', message, { exit: EXIT.usage, hint });
}
