import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { TrueupError } from '../error.ts';
import { codeOf } from './file-error.ts';

/**
 * Below the ports that systems give to outgoing connections. There a client that keeps trying to reach a stopped
 * server can end up connected to itself and hold the port.
 */
const FIRST = 20_000;
const END = 32_000;
const TRIES = 100;

/** A TCP port of 127.0.0.1 that nobody listened on a moment ago. Another process may take it first: be ready to ask again. */
export async function sparePort(): Promise<number> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const port = randomInt(FIRST, END);
    if (await isSpare(port)) return port;
  }
  throw new TrueupError('TRU_EMBEDDED_PORT', `found no spare port on 127.0.0.1 between ${FIRST} and ${END}`);
}

async function isSpare(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}
