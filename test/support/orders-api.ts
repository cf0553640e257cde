import type { IncomingMessage, ServerResponse } from 'node:http';
import type { StoredOrder } from '../contract/describe-side.ts';
import { startServer, type TestServer } from './http-server.ts';

export interface OrdersApi {
  readonly server: TestServer;
  orders: readonly StoredOrder[];
  close(): Promise<void>;
}

/** The answer is written by hand, so that amounts go out as exact JSON numbers. */
const toJson = (order: StoredOrder) =>
  `{"order_no":${JSON.stringify(order.order_no)},"state":${JSON.stringify(order.state)},"amount":${order.amount},"paid_at":"${order.paid_at}"}`;

const PAGE = 10;

/**
 * A small API of orders: `GET /orders/:no`, `POST /orders/search` with `{"nos": [...]}` and `GET /orders?from&to` with
 * `cursor` or `page`.
 */
export async function startOrdersApi(): Promise<OrdersApi> {
  const api = { orders: [] as readonly StoredOrder[] };
  const server = await startServer((request, response) => answer(api.orders, request, response));
  return Object.assign(api, { server, close: () => server.close() });
}

function answer(orders: readonly StoredOrder[], request: IncomingMessage, response: ServerResponse): void {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  const single = /^\/api\/orders\/([^/]+)$/.exec(path)?.[1];
  if (request.method === 'POST' && path === '/api/orders/search') {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { nos } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as { nos: string[] };
      send(response, 200, `{"data":[${orders.filter((order) => nos.includes(order.order_no)).map(toJson)}]}`);
    });
  } else if (path === '/api/orders') {
    sendPage(response, orders, new URLSearchParams(query));
  } else if (single !== undefined) {
    const found = orders.filter((order) => order.order_no === decodeURIComponent(single));
    if (found.length === 0) send(response, 404, '{"error":"no such order"}');
    else send(response, 200, `{"data":[${found.map(toJson)}]}`);
  } else {
    send(response, 404, '{"error":"no such path"}');
  }
}

function sendPage(response: ServerResponse, orders: readonly StoredOrder[], query: URLSearchParams): void {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  const page = Number(query.get('page') ?? query.get('cursor') ?? '1');
  // The last second is listed too, as by an API whose windows are closed; the side drops what lies outside.
  const inside = orders.filter((order) => order.paid_at >= from && order.paid_at <= to);
  const items = inside.slice((page - 1) * PAGE, page * PAGE);
  const next = page * PAGE < inside.length ? `"${page + 1}"` : 'null';
  send(response, 200, `{"data":[${items.map(toJson)}],"next":${next}}`);
}

function send(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body);
}
