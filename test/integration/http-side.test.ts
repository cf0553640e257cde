import type { RequestListener } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { configSchema, ruleSchema, sideSchema } from '../../src/config/schema.ts';
import type { SideRecord } from '../../src/reconcile/record.ts';
import type { ReadGate, Side } from '../../src/reconcile/side.ts';
import { createSide } from '../../src/reconcile/sides/create.ts';
import { startServer, type TestServer } from '../support/http-server.ts';
import { at, NOON } from '../support/records.ts';

const { signal } = new AbortController();
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Options {
  readonly names?: readonly string[];
  readonly rules?: Record<string, unknown>;
  readonly timeout?: object;
  readonly readGate?: ReadGate;
  readonly [option: string]: unknown;
}

async function open(
  handler: RequestListener,
  options: Options = {},
): Promise<{ side: Side; server: TestServer }> {
  const {
    names = ['no'],
    rules = {},
    timeout = {},
    readGate = { take: async () => {} },
    ...config
  } = options;
  const server = await startServer(handler);
  closers.push(() => server.close());
  const { targets } = configSchema.parse({
    version: 1,
    reconciliations: {},
    targets: { gateway: { url: `${server.url}/v1/`, headers: { 'X-Token': 'hunter2' }, timeout } },
  });
  const parsed = sideSchema.parse({
    type: 'http',
    target: 'gateway',
    lookup: { path: '/orders/{key}' },
    key: { no: '/no' },
    fields: { state: '/state' },
    ...config,
  });
  const side = createSide(parsed, {
    name: 'downstream',
    keyNames: names,
    rules: Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, ruleSchema.parse(rule)])),
    targets,
    readGate,
  });
  closers.push(() => side.close());
  return { side, server };
}

const answers =
  (status: number, body: string, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, headers);
    response.end(body);
  };

async function scan(side: Side): Promise<SideRecord[]> {
  const records: SideRecord[] = [];
  for await (const page of side.scan(NOON, signal)) records.push(...page);
  return records;
}

describe('a lookup over HTTP', () => {
  it('takes 404 for an absent record when it asks for one key', async () => {
    const { side } = await open(answers(404, 'not found'));
    expect(await side.lookup([['a']], signal)).toEqual([]);
  });

  it('does not take 404 for absent records when it asks for many', async () => {
    const { side } = await open(answers(404, '{}'), { lookup: { path: '/orders', batch: 10 } });
    await expect(side.lookup([['a']], signal)).rejects.toMatchObject({ code: 'TRU_SIDE_MISCONFIGURED' });
  });

  it('sends the target’s headers and takes a slot of its read gate before each call', async () => {
    const taken: string[] = [];
    const readGate: ReadGate = {
      take: async (target) => {
        taken.push(target);
      },
    };
    const { side, server } = await open(answers(200, '{"no":"a","state":"PAID"}'), { readGate });
    const [record] = await side.lookup([['a']], signal);
    expect(record).toEqual({ key: ['a'], time: null, fields: { state: { type: 'text', text: 'PAID' } } });
    expect(taken).toEqual(['gateway']);
    expect(server.requests).toMatchObject([{ url: '/v1/orders/a', headers: { 'x-token': 'hunter2' } }]);
  });

  it('reads texts in the form that their rules declare, and JSON numbers as they are', async () => {
    const body = '{"no":"a","sum":"1.560,50","fee":1.560,"hash":"AP8=","tags":["b",1.0],"left":1.10}';
    const { side } = await open(answers(200, body), {
      fields: { sum: '/sum', fee: '/fee', hash: '/hash', tags: '/tags', left: '/left' },
      rules: {
        sum: { type: 'decimal', format: '1.234,56' },
        fee: { type: 'decimal', format: '1.234,56' },
        hash: { type: 'bytes', encoding: 'base64' },
        tags: 'set',
        left: { type: 'decimal', scale: 'compare' },
      },
    });
    expect((await side.lookup([['a']], signal))[0]?.fields).toEqual({
      sum: { type: 'decimal', text: '1560.5' },
      fee: { type: 'decimal', text: '1.56' },
      hash: { type: 'bytes', text: '00ff' },
      tags: { type: 'set', text: '["b","1"]' },
      left: { type: 'decimal', text: '1.1', scale: 2 },
    });
  });

  it('sends nothing while the gate gives no slot', async () => {
    const readGate: ReadGate = { take: () => Promise.reject(new Error('on hold')) };
    const { side, server } = await open(answers(200, '{}'), { readGate });
    await expect(side.lookup([['a']], signal)).rejects.toThrow('on hold');
    expect(server.requests).toEqual([]);
  });

  it('puts keys of several parts into path, query and body', async () => {
    const answer: RequestListener = (_request, response) => response.end('{"items":[{"s":"7","n":"x/y"}]}');
    const key = { shop: '/s', order: '/n' };
    const names = ['shop', 'order'];
    const single = await open(answer, {
      names,
      key,
      fields: {},
      lookup: { path: '/shops/{shop}/orders', query: { n: '{order}' }, items: '/items' },
    });
    expect(await single.side.lookup([['7', 'x/y']], signal)).toHaveLength(1);
    expect(single.server.requests[0]?.url).toBe('/v1/shops/7/orders?n=x%2Fy');
    const batch = await open(answer, {
      names,
      key,
      fields: {},
      lookup: {
        method: 'POST',
        path: '/find',
        body: { ids: '{keys}', all: true },
        batch: 5,
        items: '/items',
      },
    });
    expect(await batch.side.lookup([['7', 'x/y']], signal)).toHaveLength(1);
    expect(JSON.parse(batch.server.requests[0]?.body ?? '')).toEqual({
      ids: [{ shop: '7', order: 'x/y' }],
      all: true,
    });
  });

  it('does not call a record missing when the answer is about other keys', async () => {
    const { side } = await open(answers(200, '{"no":"7"}'));
    await expect(side.lookup([['007']], signal)).rejects.toMatchObject({ code: 'TRU_SIDE_BROKEN_ANSWER' });
    const deaf = await open(answers(200, '[{"no":"x"},{"no":"a"}]'), {
      lookup: { path: '/orders', batch: 10 },
    });
    await expect(deaf.side.lookup([['a'], ['b']], signal)).rejects.toThrow(/answered \["x"\]/);
    expect(await deaf.side.lookup([['a']], signal)).toHaveLength(1);
  });

  it.each([
    [500, 'TRU_SIDE_UNREACHABLE', true],
    [503, 'TRU_SIDE_UNREACHABLE', true],
    [429, 'TRU_SIDE_REFUSED', true],
    [401, 'TRU_SIDE_REFUSED', false],
    [400, 'TRU_SIDE_REFUSED', false],
    [302, 'TRU_SIDE_MISCONFIGURED', false],
  ])('throws at status %i', async (status, code, transient) => {
    const { side, server } = await open(answers(status, '{"no":"a"}', { location: '/elsewhere' }));
    await expect(side.lookup([['a']], signal)).rejects.toMatchObject({ code, transient });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['an HTML page', '<html>'],
    ['an empty body', ''],
    ['broken JSON', '{"no":"a"'],
    ['a repeated member', '{"no":"a","no":"b"}'],
    ['a record without its key', '{"state":"PAID"}'],
    ['a record with a null key', '{"no":null}'],
    ['a number where records should be', '7'],
  ])('calls %s a broken answer', async (_what, body) => {
    const { side } = await open(answers(200, body));
    await expect(side.lookup([['a']], signal)).rejects.toMatchObject({ code: 'TRU_SIDE_BROKEN_ANSWER' });
  });

  it('calls an answer that breaks off a broken answer', async () => {
    const { side } = await open((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"no":"a"}');
      setImmediate(() => response.destroy());
    });
    await expect(side.lookup([['a']], signal)).rejects.toMatchObject({
      code: 'TRU_SIDE_BROKEN_ANSWER',
      transient: true,
    });
  });

  it('refuses an answer above 32 MB', async () => {
    const { side } = await open(answers(200, `{"no":"${'a'.repeat(33 * 1024 * 1024)}"}`));
    await expect(side.lookup([['a']], signal)).rejects.toThrow(/32 MB/);
  });

  it('gives up at the timeout of the whole answer', async () => {
    const { side } = await open(
      (_request, response) => {
        response.writeHead(200);
        const drip = setInterval(() => response.write(' '), 20);
        response.on('close', () => clearInterval(drip));
      },
      { timeout: { answer: '150ms' } },
    );
    await expect(side.lookup([['a']], signal)).rejects.toMatchObject({
      code: 'TRU_SIDE_UNREACHABLE',
      message: expect.stringContaining('150 ms'),
    });
  });

  it('shows no secret in its errors', async () => {
    const { side } = await open(answers(401, 'hunter2'), {
      lookup: { path: '/orders/{key}', query: { token: 'hunter2' } },
    });
    const error = await side.lookup([['a']], signal).catch((reason: unknown) => reason);
    expect(String(error)).not.toContain('hunter2');
    expect(String(error)).toContain('downstream http gateway');
  });
});

describe('a list over HTTP', () => {
  const list = {
    path: '/orders',
    query: { since: '{from}', cursor: '{cursor}' },
    items: '/data',
    next: '/next',
  };

  it('follows cursors, asks with instants, and drops what lies outside the window', async () => {
    const pages = [
      `{"data":[{"no":"a","t":"${at('12:00')}"},{"no":"b","t":"${at('13:00')}"}],"next":9007199254740993}`,
      `{"data":[{"no":"c","t":"2026-11-30T13:30:00+01:00"}],"next":null}`,
    ];
    const { side, server } = await open((_request, response) => response.end(pages.shift()), {
      list,
      time: '/t',
    });
    expect((await scan(side)).map((record) => record.key[0])).toEqual(['a', 'c']);
    expect(server.requests.map((request) => request.url)).toEqual([
      '/v1/orders?since=2026-11-30T12%3A00%3A00.000000Z',
      '/v1/orders?since=2026-11-30T12%3A00%3A00.000000Z&cursor=9007199254740993',
    ]);
  });

  it('is broken when a cursor or a page comes again, instead of going on for ever', async () => {
    const cursors = await open(answers(200, '{"data":[{"no":"a"}],"next":"x"}'), { list });
    await expect(scan(cursors.side)).rejects.toThrow(/came twice/);
    const numbered = { path: '/orders', query: { page: '{page}' }, items: '/data', firstPage: 0 };
    const pages = await open(answers(200, '{"data":[{"no":"a"}]}'), { list: numbered });
    await expect(scan(pages.side)).rejects.toThrow(/same records/);
    expect(pages.server.requests.map((request) => request.url)).toEqual([
      '/v1/orders?page=0',
      '/v1/orders?page=1',
    ]);
  });

  it('ends an unread page with an error, never with fewer records', async () => {
    let calls = 0;
    const { side } = await open(
      (_request, response) => {
        calls += 1;
        if (calls === 1) return response.end('{"data":[{"no":"a"}],"next":"2"}');
        response.statusCode = 503;
        return response.end();
      },
      { list },
    );
    await expect(scan(side)).rejects.toMatchObject({ code: 'TRU_SIDE_UNREACHABLE' });
  });
});

describe('an HTTP side', () => {
  it('tells the server’s time from its Date header', async () => {
    const { side } = await open(answers(405, '', { date: 'Mon, 30 Nov 2026 12:00:00 GMT' }));
    expect(await side.clock(signal)).toEqual({ now: at('12:00'), oldestOpen: null, seesTransactions: false });
  });

  it('warns of a mapped field that no sampled record has', async () => {
    const list = { path: '/orders', items: '/data' };
    const { side } = await open(answers(200, '{"data":[{"no":"a","amount":1.50}]}'), {
      list,
      fields: { amount: '/amount', state: '/stat' },
    });
    const description = await side.describe(signal);
    expect(description.warnings).toContainEqual(expect.stringContaining('state at "/stat"'));
    expect(description.samples).toMatchObject([
      { key: ['a'], fields: { amount: { type: 'decimal', text: '1.5' } } },
    ]);
  });

  it('refuses a compared field without a place', async () => {
    await expect(open(answers(200, ''), { rules: { amount: 'decimal' } })).rejects.toMatchObject({
      code: 'TRU_SIDE_MISCONFIGURED',
      message: expect.stringContaining('amount'),
    });
  });
});
