import { DateTime } from 'luxon';
import type { HttpSideConfig } from '../../config/schema.ts';
import type { Secret } from '../../config/secret.ts';
import { instantFromMillis } from '../instant.ts';
import { type JsonPointer, parsePointer, pointTo } from '../json-pointer.ts';
import { isUsableKey } from '../key.ts';
import { type Key, keyText, type SideRecord, type Window } from '../record.ts';
import { type ReadGate, type Side, type SideClock, type SideDescription, SideError } from '../side.ts';
import type { JsonNode } from '../value/lossless-json.ts';
import { type Call, HttpClient, type HttpTarget } from './http-client.ts';
import { describeHttp } from './http-describe.ts';
import { type JsonRecordReader, jsonRecordReader } from './http-record.ts';
import { fillBody, fillPath, fillQuery, keyValue, type Placeholders, singleKey } from './http-template.ts';
import { type Places, placesOf, type SideContext } from './mapping.ts';

export interface HttpSideContext extends SideContext {
  readonly readGate: ReadGate;
}

type CallConfig = HttpSideConfig['lookup'] | NonNullable<HttpSideConfig['list']>;
type ListConfig = NonNullable<HttpSideConfig['list']>;

/** Lookups in flight at once; the read gate still paces each of them. */
const PARALLEL = 4;

/**
 * Reads records of an HTTP API: by key, one or many per call, and by window where the API lists. Throws `SideError`
 * when the configuration cannot work.
 */
export function createHttpSide(config: HttpSideConfig, target: HttpTarget, context: HttpSideContext): Side {
  return new HttpSide(config, target, context);
}

class HttpSide implements Side {
  readonly label: string;
  readonly canScan: boolean;
  /** No API promises the byte order of keys. */
  readonly ordered = false;
  readonly #config: HttpSideConfig;
  readonly #context: HttpSideContext;
  readonly #where: string;
  readonly #client: HttpClient;
  readonly #places: Places;
  readonly #reader: JsonRecordReader;

  constructor(config: HttpSideConfig, target: HttpTarget, context: HttpSideContext) {
    this.label = `http ${config.target}`;
    this.#where = `${context.name} ${this.label}${atHost(target.url)}`;
    this.canScan = config.list !== undefined;
    this.#config = config;
    this.#context = context;
    this.#places = placesOf({ key: config.key, fields: config.fields }, context, (name) => {
      throw this.#error(
        'TRU_SIDE_MISCONFIGURED',
        `no JSON pointer for ${name}; add it to the side’s key or fields`,
      );
    });
    this.#reader = jsonRecordReader(this.#places, config.time, context);
    const { readGate } = context;
    this.#client = new HttpClient({ target, targetName: config.target, readGate, where: this.#where });
  }

  /** The server's `Date` is whole seconds and never ahead; without one this process's clock has to do. */
  async clock(signal: AbortSignal): Promise<SideClock> {
    const header = await this.#client.date(signal);
    const date = header === null ? undefined : DateTime.fromHTTP(header);
    const ms = date?.isValid === true ? date.toMillis() : Date.now();
    return { now: instantFromMillis(ms), oldestOpen: null, seesTransactions: false };
  }

  async *scan(window: Window, signal: AbortSignal): AsyncGenerator<readonly SideRecord[]> {
    for await (const nodes of this.#pages(window, signal)) {
      const records = nodes.map((node) => this.#record(node));
      const inside = records.filter(({ time }) => time === null || (time >= window.from && time < window.to));
      if (inside.length > 0) yield inside;
    }
  }

  async lookup(keys: readonly Key[], signal: AbortSignal): Promise<readonly SideRecord[]> {
    const wanted = [...new Map(keys.filter(isUsableKey).map((key) => [keyText(key), key])).values()];
    const { batch } = this.#config.lookup;
    const calls: (readonly Key[])[] = [];
    for (let at = 0; at < wanted.length; at += batch) calls.push(wanted.slice(at, at + batch));
    const found: SideRecord[] = [];
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const work = async () => {
      for (let call = calls.shift(); call !== undefined; call = calls.shift()) {
        found.push(...(await this.#lookupOnce(call, either)));
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(PARALLEL, calls.length) }, work));
    } catch (error) {
      failed.abort(error);
      throw error;
    }
    return found;
  }

  async describe(signal: AbortSignal): Promise<SideDescription> {
    const now = (await this.clock(signal)).now;
    const described = await describeHttp({
      config: this.#config,
      places: this.#places,
      rules: this.#context.rules,
      absentIn: this.#reader.absentIn,
      read: (node) => this.#record(node),
      now,
      pages: (window) => this.#pages(window, signal),
    });
    return { label: this.label, ...described };
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #lookupOnce(keys: readonly Key[], signal: AbortSignal): Promise<readonly SideRecord[]> {
    const { lookup } = this.#config;
    const { keyNames } = this.#context;
    const [first = []] = keys;
    const placeholders =
      lookup.batch === 1
        ? { ...singleKey(first, keyNames), keys: [keyValue(first, keyNames)] }
        : { keys: keys.map((key) => keyValue(key, keyNames)) };
    const call = callOf(lookup, placeholders);
    const { json } = await this.#client.json({ ...call, mayBeAbsent: lookup.batch === 1 }, signal);
    if (json === null) return [];
    const records = this.#items(json, lookup.items, call, lookup.batch === 1).map((node) =>
      this.#record(node),
    );
    return this.#onlyAsked(keys, records, call);
  }

  /**
   * Drops records that were not asked for. When some that were asked for are absent as well, the API did not answer
   * the question (it ignored the keys, or writes them differently), and nothing may be concluded.
   */
  #onlyAsked(keys: readonly Key[], records: readonly SideRecord[], call: Call): readonly SideRecord[] {
    const asked = new Set(keys.map(keyText));
    const answered = records.filter((record) => asked.has(keyText(record.key)));
    const stranger = records.find((record) => !asked.has(keyText(record.key)));
    if (stranger !== undefined && new Set(answered.map((record) => keyText(record.key))).size < asked.size) {
      throw this.#broken(
        call,
        `asked for ${[...asked].slice(0, 3).join(', ')}, answered ${keyText(stranger.key)} (see that path, query or body of lookup select by key, as the API writes it)`,
      );
    }
    return answered;
  }

  async *#pages(window: Window, signal: AbortSignal): AsyncGenerator<readonly JsonNode[]> {
    const { list } = this.#config;
    if (list === undefined) throw this.#error('TRU_SIDE_MISCONFIGURED', 'no list call is configured');
    const next = list.next === undefined ? null : parsePointer(list.next);
    const seen = new Set<string>();
    let cursor: string | null = null;
    for (let page = list.firstPage ?? 1; ; page += 1) {
      const call = callOf(list, { from: window.from, to: window.to, cursor, page });
      const { json } = await this.#client.json(call, signal);
      if (json === null) throw this.#broken(call, 'the list is absent');
      const items = this.#items(json, list.items, call, false);
      yield items;
      if (next !== null) cursor = this.#nextCursor(json, next, seen, call);
      if (isLast(list, cursor, items)) return;
      if (next === null) this.#assertMoves(items, seen, call);
    }
  }

  #nextCursor(json: JsonNode, pointer: JsonPointer, seen: Set<string>, call: Call): string | null {
    const node = pointTo(json, pointer);
    if (node === undefined || node.kind === 'null') return null;
    if (node.kind !== 'string' && node.kind !== 'number') {
      throw this.#broken(call, `the next cursor is a JSON ${node.kind}`);
    }
    const cursor = node.kind === 'string' ? node.value : node.text;
    if (cursor === '') return null;
    if (seen.has(cursor)) throw this.#broken(call, `the cursor ${cursor} came twice, so the list never ends`);
    seen.add(cursor);
    return cursor;
  }

  /** A server that ignores the page number gives the first page for ever. */
  #assertMoves(items: readonly JsonNode[], seen: Set<string>, call: Call): void {
    const keys = JSON.stringify(items.map((node) => this.#record(node).key));
    if (seen.has(keys)) throw this.#broken(call, 'two pages hold the same records, so the list never ends');
    seen.clear();
    seen.add(keys);
  }

  #items(json: JsonNode, pointer: string, call: Call, single: boolean): readonly JsonNode[] {
    const node = pointTo(json, parsePointer(pointer));
    if (node?.kind === 'array') return node.items;
    if (single && node?.kind === 'object') return [node];
    if (single && node?.kind === 'null') return [];
    const found = node === undefined ? `nothing; the answer is ${shapeOf(json)}` : `a JSON ${node.kind}`;
    throw this.#broken(
      call,
      `expected a list of records at "${pointer}", found ${found} (set items to the JSON pointer of the list)`,
    );
  }

  #record(node: JsonNode): SideRecord {
    const record = this.#reader.read(node);
    if (typeof record === 'string')
      throw this.#error('TRU_SIDE_BROKEN_ANSWER', `${record} (correct the JSON pointers under key)`);
    return record;
  }

  #broken(call: Call, message: string): SideError {
    return this.#error('TRU_SIDE_BROKEN_ANSWER', `${call.method} ${call.path.split('?')[0]}: ${message}`);
  }

  #error(code: SideError['code'], message: string): SideError {
    return new SideError(code, this.#where, message, { transient: false });
  }
}

/** Host and port of the target's address, as errors name it. */
function atHost(url: Secret): string {
  return URL.canParse(url.reveal()) ? ` at ${new URL(url.reveal()).host}` : '';
}

/** What an answer is, for a person who corrects a pointer: names of members, never values. */
function shapeOf(json: JsonNode): string {
  if (json.kind !== 'object') return `a JSON ${json.kind}`;
  const names = [...json.members.keys()].slice(0, 8);
  return names.length === 0 ? 'an empty object' : `an object with ${names.join(', ')}`;
}

function callOf(config: CallConfig, values: Placeholders): Call {
  const path = fillPath(config.path, values);
  const query = fillQuery(config.query, values);
  const call = {
    method: config.method,
    path: query === '' ? path : `${path}${path.includes('?') ? '&' : '?'}${query}`,
  };
  return config.body === undefined ? call : { ...call, body: JSON.stringify(fillBody(config.body, values)) };
}

/** A cursor list ends without a next cursor, a numbered list with an empty page, any other list after one page. */
function isLast(list: ListConfig, cursor: string | null, items: readonly JsonNode[]): boolean {
  if (list.next !== undefined) return cursor === null;
  return list.firstPage === undefined || items.length === 0;
}
