import { setMaxListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Call {
  readonly body: unknown;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /**
   * When the call arrived, in epoch milliseconds with a fraction. Taken before anything else is done, and from the
   * steady clock, so that a step of the wall clock cannot move arrivals closer together.
   */
  readonly arrivedAt: number;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  /** Hold the answer back for this long after the work was done. */
  readonly afterMs?: number;
}

/** `POST /payments` -> what to do about it. */
export type Routes = Readonly<Record<string, (call: Call) => Promise<Answer> | Answer>>;

export interface JsonServer {
  readonly port: number;
  readonly url: string;
  close(): Promise<void>;
}

/** Serves JSON over HTTP on a spare port of the loopback interface. */
export async function startJsonServer(routes: Routes): Promise<JsonServer> {
  const closing = new AbortController();
  // One for each answer that is held back.
  setMaxListeners(0, closing.signal);
  const server = createServer((request, response) => {
    const arrivedAt = performance.timeOrigin + performance.now();
    void handle(routes, request, response, arrivedAt, closing.signal);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function handle(
  routes: Routes,
  request: IncomingMessage,
  response: ServerResponse,
  arrivedAt: number,
  closing: AbortSignal,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1');
  const answer = await route(routes, request, url, arrivedAt);
  if (answer.afterMs !== undefined && !(await waited(answer.afterMs, closing))) return;
  if (response.destroyed) return;
  response.writeHead(answer.status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(answer.body));
}

async function route(routes: Routes, request: IncomingMessage, url: URL, arrivedAt: number): Promise<Answer> {
  const found = routes[`${request.method} ${url.pathname}`];
  if (!found)
    return { status: 404, body: { code: 'NOT_FOUND', message: `no ${request.method} ${url.pathname}` } };
  try {
    const text = await readText(request);
    const body: unknown = text === '' ? null : JSON.parse(text);
    return await found({ body, query: url.searchParams, headers: request.headers, arrivedAt });
  } catch (error) {
    const status = error instanceof SyntaxError || error instanceof BadRequest ? 400 : 500;
    if (status === 500) console.error(error);
    return { status, body: { code: status === 400 ? 'BAD_REQUEST' : 'ERROR', message: String(error) } };
  }
}

/** The call is not what this server understands. */
export class BadRequest extends Error {
  override readonly name = 'BadRequest';
}

/** A text member of a JSON object, or `BadRequest`. */
export function textOf(body: unknown, member: string): string {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, member) : undefined;
  if (typeof value === 'string' && value !== '') return value;
  if (typeof value === 'number') return String(value);
  throw new BadRequest(`"${member}" is missing`);
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

/** False when the server closes before the time is over. */
async function waited(ms: number, closing: AbortSignal): Promise<boolean> {
  try {
    await sleep(ms, undefined, { signal: closing });
    return true;
  } catch {
    return false;
  }
}
