import { isInstant } from '../instant.ts';
import { type JsonPointer, parsePointer, pointTo } from '../json-pointer.ts';
import type { SideRecord, Value } from '../record.ts';
import { canonicalise, readingBy, typeOfJson } from '../value/canonicalise.ts';
import type { JsonNode } from '../value/lossless-json.ts';
import type { Places, SideContext } from './mapping.ts';

export interface JsonRecordReader {
  /** Returns a sentence when the piece of the answer is no record. */
  readonly read: (node: JsonNode) => SideRecord | string;
  /** Names of mapped fields that the piece does not have at all. */
  readonly absentIn: (node: JsonNode) => readonly string[];
}

type Place = readonly [string, JsonPointer];

/** Reads records by JSON pointers. A key must be there; a field that is not there is null, as many APIs leave it out. */
export function jsonRecordReader(
  places: Places,
  time: string | undefined,
  context: SideContext,
): JsonRecordReader {
  const keys = places.keys.map(toPlace);
  const fields = places.fields.map(toPlace);
  const timePlace: Place | null = time === undefined ? null : ['', parsePointer(time)];
  const timeZone = zoneOfTime(places, time, context);
  const valueAt = (node: JsonNode, [name, pointer]: Place): Value => {
    const found = pointTo(node, pointer);
    if (found === undefined) return { type: 'null' };
    const rule = context.rules[name];
    return canonicalise(found, rule?.type ?? typeOfJson(found), readingBy(rule));
  };

  function read(node: JsonNode): SideRecord | string {
    const key: string[] = [];
    for (const place of keys) {
      const value = valueAt(node, place);
      if (value.type === 'null') return `a record has no key part ${place[0]} at ${show(place[1])}`;
      if (value.type === 'undecided') return `the key part ${place[0]} of a record ${value.reason}`;
      key.push(value.text);
    }
    const found = timePlace === null ? undefined : pointTo(node, timePlace[1]);
    const at = found === undefined ? undefined : canonicalise(found, 'instant', { zone: timeZone });
    return {
      key,
      time: at?.type === 'instant' && isInstant(at.text) ? at.text : null,
      fields: Object.fromEntries(fields.map((place) => [place[0], valueAt(node, place)])),
    };
  }

  const absentIn = (node: JsonNode) =>
    fields.filter(([, pointer]) => pointTo(node, pointer) === undefined).map(([name]) => name);
  return { read, absentIn };
}

function toPlace([name, pointer]: readonly [string, string]): Place {
  return [name, parsePointer(pointer)];
}

function zoneOfTime(places: Places, time: string | undefined, context: SideContext): string | undefined {
  const field = places.fields.find(([, pointer]) => pointer === time);
  return field === undefined ? undefined : context.rules[field[0]]?.zone;
}

function show(pointer: JsonPointer): string {
  return pointer.length === 0 ? 'the record itself' : `/${pointer.join('/')}`;
}
