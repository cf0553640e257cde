import { ESCALATION_REASONS } from '../compensate/state.ts';
import { EXIT, TrueupError } from '../error.ts';
import { keyFromText } from '../reconcile/record.ts';
import type { DiffState } from '../store/diffs.ts';
import type { DiffFilters } from '../store/list-diffs.ts';

export const WHERE_HELP =
  'reconciliation=NAME,kind=missing,state=open,reason=refused,run=12,key=A1 (all must hold)';

const KINDS = ['missing', 'extra', 'mismatched', 'duplicate'] as const;
const STATES: readonly DiffState[] = ['open', 'verified', 'healed', 'resolved', 'failed', 'dismissed'];

/** Reads `--where`. Without a state, the diffs that still need something: open and failed. */
export function diffFilters(where: string | undefined): DiffFilters {
  let filters: DiffFilters = { states: ['open', 'failed'] };
  for (const part of where?.split(',') ?? []) {
    const at = part.indexOf('=');
    const name = part.slice(0, at).trim();
    const value = part.slice(at + 1).trim();
    if (at < 1 || value === '') throw usage(`"${part}" is no condition`, `write ${WHERE_HELP}`);
    filters = { ...filters, ...condition(name, value) };
  }
  return filters;
}

function condition(name: string, value: string): DiffFilters {
  switch (name) {
    case 'reconciliation':
      return { reconciliation: value };
    case 'run':
      return { runId: value };
    case 'key':
      return {
        key: value.startsWith('[') ? keyFromText(value) : value.split('/').map((part) => part.trim()),
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
  throw usage(`${name} "${value}" is unknown`, `use ${known.join(', ')}`);
}

function usage(message: string, hint: string): TrueupError {
  return new TrueupError('TRU_USAGE', message, { exit: EXIT.usage, hint });
}
