import { setTimeout as sleep } from 'node:timers/promises';
import Fastify, { type FastifyInstance } from 'fastify';
import { EXIT, TrueupError } from '../error.ts';
import { type CheckResult, evaluateHealth } from '../observe/health.ts';
import type { Logger } from '../observe/logger.ts';
import type { Metrics } from '../observe/metrics.ts';

/** One thing that must be well before work is given to this process. A throw counts as not well. */
export type HealthCheck = (signal: AbortSignal) => Promise<CheckResult>;

export interface HealthServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** By name: `database`, `schema`, `queue`, `draining`. */
  readonly checks: Readonly<Record<string, HealthCheck>>;
  readonly metrics: Pick<Metrics, 'contentType' | 'text'>;
  readonly logger: Logger;
}

export interface HealthServer {
  /** With the port that was really taken. */
  readonly url: string;
  /** Ends idle and busy connections too. */
  close(): Promise<void>;
}

/** Shorter than what orchestrators wait for a probe. */
const CHECK_MS = 2_000;

/** Nothing here is a page: a browser may load, frame, sniff and keep none of it. */
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/**
 * Serves `/healthz` (this process answers, nothing else is asked), `/readyz` (503 and which check is not well) and
 * `/metrics`. Throws `TRU_PORT_IN_USE` (exit 75) when another process has the port, `TRU_LISTEN` (exit 2) when the
 * address cannot be listened on.
 */
export async function startHealthServer(options: HealthServerOptions): Promise<HealthServer> {
  const server = Fastify({ logger: false, forceCloseConnections: true, bodyLimit: 16 * 1024 });
  server.addHook('onRequest', async (_request, reply) => {
    reply.headers(HEADERS);
  });
  addRoutes(server, options);
  addProblems(server, options.logger);
  const url = await listen(server, options);
  options.logger.info({ event: 'http-listening', url }, `listening on ${url}`);
  return { url, close: () => server.close() };
}

function addRoutes(server: FastifyInstance, { checks, metrics, logger }: HealthServerOptions): void {
  server.get('/healthz', async () => ({ status: 'alive' }));
  server.get('/readyz', async (_request, reply) => {
    const names = Object.keys(checks);
    const results = await Promise.all(
      Object.entries(checks).map(([name, check]) => run(name, check, logger)),
    );
    const found = Object.fromEntries(names.flatMap((name, i) => (results[i] ? [[name, results[i]]] : [])));
    const report = evaluateHealth(found);
    return reply.code(report.status === 'ready' ? 200 : 503).send(report);
  });
  server.get('/metrics', async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
}

async function run(name: string, check: HealthCheck, logger: Logger): Promise<CheckResult> {
  const ended = new AbortController();
  const late = sleep(
    CHECK_MS,
    { ok: false as const, detail: `no answer within ${CHECK_MS / 1000} s` },
    {
      signal: ended.signal,
    },
  ).catch(() => ({ ok: false as const, detail: 'ended' }));
  try {
    return await Promise.race([check(AbortSignal.timeout(CHECK_MS)), late]);
  } catch (error) {
    // The text may name a host or a user; whoever can read the log may know it.
    logger.warn({ event: 'health-check-failed', check: name, err: error });
    return { ok: false, detail: codeOf(error) };
  } finally {
    ended.abort();
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'failed';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/** Problem details (RFC 9457) for what no route answers and for what a route throws. */
function addProblems(server: FastifyInstance, logger: Logger): void {
  server.setNotFoundHandler((_request, reply) =>
    reply.code(404).type('application/problem+json').send({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      detail: 'there are /healthz, /readyz and /metrics',
    }),
  );
  server.setErrorHandler((error: { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500)
      logger.error({ event: 'http-error', route: request.routeOptions.url ?? null, err: error });
    return reply
      .code(status)
      .type('application/problem+json')
      .send({ type: 'about:blank', title: status >= 500 ? 'Internal Server Error' : 'Bad Request', status });
  });
}

async function listen(server: FastifyInstance, { host, port }: HealthServerOptions): Promise<string> {
  try {
    await server.listen({ host, port });
  } catch (error) {
    await server.close();
    throw explainListen(error, host, port);
  }
  const address = server.server.address();
  if (address === null || typeof address === 'string')
    throw new TrueupError('TRU_LISTEN', 'the server has no address');
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}

function explainListen(error: unknown, host: string, port: number): TrueupError {
  if (error instanceof Error && codeOf(error) === 'EADDRINUSE') {
    return new TrueupError('TRU_PORT_IN_USE', `port ${port} on ${host} is in use by another process`, {
      exit: EXIT.temporary,
      hint: 'stop that process, or set another http.port in the config (0 takes any free port)',
      cause: error,
    });
  }
  return new TrueupError('TRU_LISTEN', `cannot listen on ${host} port ${port} (${codeOf(error)})`, {
    exit: EXIT.usage,
    hint: 'http.host must be an address of this machine, and ports below 1024 need a privilege',
    cause: error,
  });
}
