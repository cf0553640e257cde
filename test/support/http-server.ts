import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, IncomingMessage, type RequestListener } from 'node:http';

export interface RecordedRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** When its headers arrived, on the monotonic clock of `performance.now()`. */
  readonly at: number;
}

export interface TestServer {
  /** `http://127.0.0.1:<port>`, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** What arrived, in order, each with its whole body; recorded before the handler runs. */
  readonly requests: RecordedRequest[];
  /** Cuts the open connections. */
  close(): Promise<void>;
}

/** A real HTTP server on a spare port that records each request and then lets `handler` answer it. */
export async function startServer(handler: RequestListener): Promise<TestServer> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    const at = performance.now();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      const { method = '', url = '', headers } = request;
      requests.push({ method, url, headers, body: body.toString('utf8'), at });
      handler(replay(request, body), response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the test server has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    requests,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The request again with its body unread, for a handler that wants to read it. */
function replay(request: IncomingMessage, body: Buffer): IncomingMessage {
  const copy = new IncomingMessage(request.socket);
  Object.assign(copy, {
    method: request.method,
    url: request.url,
    httpVersion: request.httpVersion,
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    complete: true,
  });
  copy.push(body);
  copy.push(null);
  return copy;
}
