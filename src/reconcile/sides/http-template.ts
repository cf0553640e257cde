import type { Key } from '../record.ts';

/** Values for the placeholders of a call: `{key}`, `{keys}`, a key part as `{NAME}` or `{key.NAME}`, `{from}`, `{to}`, `{cursor}`, `{page}`. */
export type Placeholders = Readonly<Record<string, PlaceholderValue>>;
/** Null stands for a cursor that is not there yet: its query parameter or body member is left out. */
export type PlaceholderValue = string | number | null | readonly KeyValue[];
type KeyValue = string | Readonly<Record<string, string>>;

type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json };

const PLACEHOLDER = /\{(\w[\w.-]*)\}/g;

/** One key as a call carries it: its text when it has a single part, else an object of its parts. */
export function keyValue(key: Key, keyNames: readonly string[]): KeyValue {
  if (keyNames.length === 1) return key[0] ?? '';
  return Object.fromEntries(keyNames.map((name, i) => [name, key[i] ?? '']));
}

/** Placeholders of a call for one key: `{key}` where it has a single part, and each part by its name, also as `key.NAME` as in actions. */
export function singleKey(key: Key, keyNames: readonly string[]): Placeholders {
  const parts = Object.fromEntries(
    keyNames.flatMap((name, i) => [
      [name, key[i] ?? ''],
      [`key.${name}`, key[i] ?? ''],
    ]),
  );
  return keyNames.length === 1 ? { ...parts, key: key[0] ?? '' } : parts;
}

/** Path with encoded values. A value of dots only is encoded too, so that no server takes it for a way up. */
export function fillPath(path: string, values: Placeholders): string {
  return path.replace(PLACEHOLDER, (whole, name: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    const encoded = encodeURIComponent(textOf(value));
    return /^\.+$/.test(encoded) ? encoded.replaceAll('.', '%2E') : encoded;
  });
}

export function fillQuery(query: Readonly<Record<string, string>>, values: Placeholders): string {
  const parameters = new URLSearchParams();
  for (const [name, template] of Object.entries(query)) {
    if (values[alone(template) ?? ''] === null) continue;
    parameters.append(name, fillText(template, values));
  }
  return parameters.toString();
}

/** A string that is one placeholder becomes its value with its type; within longer strings it becomes text. */
export function fillBody(body: Json, values: Placeholders): Json {
  if (typeof body === 'string') {
    const value = values[alone(body) ?? ''];
    return value === undefined ? fillText(body, values) : value;
  }
  if (body === null || typeof body !== 'object') return body;
  if (isList(body)) return body.map((item) => fillBody(item, values));
  const members = Object.entries(body).filter(
    ([, member]) => typeof member !== 'string' || values[alone(member) ?? ''] !== null,
  );
  return Object.fromEntries(members.map(([name, member]) => [name, fillBody(member, values)]));
}

function isList(body: Json): body is readonly Json[] {
  return Array.isArray(body);
}

function fillText(template: string, values: Placeholders): string {
  return template.replace(PLACEHOLDER, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : textOf(value);
  });
}

/** The name of the placeholder when the text is nothing else. */
function alone(text: string): string | undefined {
  return /^\{(\w[\w.-]*)\}$/.exec(text)?.[1];
}

function textOf(value: PlaceholderValue): string {
  if (value === null) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
