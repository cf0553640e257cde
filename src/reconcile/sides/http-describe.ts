import type { HttpSideConfig, Rule } from '../../config/schema.ts';
import { addMillis, type Instant } from '../instant.ts';
import type { SideRecord, Window } from '../record.ts';
import type { SideDescription } from '../side.ts';
import type { JsonNode } from '../value/lossless-json.ts';
import type { JsonRecordReader } from './http-record.ts';
import type { Places } from './mapping.ts';

interface Described {
  readonly config: HttpSideConfig;
  readonly places: Places;
  readonly rules: Readonly<Record<string, Rule>>;
  readonly absentIn: JsonRecordReader['absentIn'];
  /** Throws for what is no record, as a run would. */
  readonly read: (node: JsonNode) => SideRecord;
  readonly now: Instant;
  readonly pages: (window: Window) => AsyncIterable<readonly JsonNode[]>;
}

const SAMPLES = 3;
/** Samples come from the records of this long before now. */
const SAMPLE_MS = 24 * 3_600_000;

/** What `trueup check` shows of an HTTP side. Makes one call of the list, where there is one. */
export async function describeHttp(side: Described): Promise<Omit<SideDescription, 'label'>> {
  const { config, places, rules } = side;
  const notes = [
    `reads ${config.lookup.batch === 1 ? 'one key' : `up to ${config.lookup.batch} keys`} per call, paced by the read gate of target ${config.target}`,
  ];
  const warnings = [
    'open transactions of this system cannot be seen; set window.settle >= window.maxTransactionAge',
  ];
  if (config.list === undefined) {
    notes.push('without a list call, extra records and edits made here only are not found');
  }
  const nodes = config.list === undefined ? [] : await firstPage(side);
  if (nodes.length > 0) {
    const absent = places.fields.filter(([name]) =>
      nodes.every((node) => side.absentIn(node).includes(name)),
    );
    for (const [name, pointer] of absent) {
      warnings.push(`no sampled record has the field ${name} at "${pointer}"; it is read as null`);
    }
  }
  const columns = [...places.keys, ...places.fields].map(([name, pointer]) => ({
    name,
    type: rules[name]?.type ?? ('text' as const),
    native: `JSON at "${pointer}"`,
  }));
  const samples = nodes.map(side.read);
  if (config.list !== undefined && nodes.length === 0)
    notes.push('the list of the last 24 hours is empty, so no sample can be shown');
  return {
    columns: [...new Map(columns.map((column) => [column.name, column])).values()],
    notes,
    warnings,
    samples,
  };
}

async function firstPage({ now, pages }: Described): Promise<readonly JsonNode[]> {
  for await (const nodes of pages({ from: addMillis(now, -SAMPLE_MS), to: now }))
    return nodes.slice(0, SAMPLES);
  return [];
}
