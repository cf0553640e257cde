import { startChat } from './chat.ts';
import { startGateway } from './gateway.ts';
import type { JsonServer } from './json-server.ts';
import { startWarehouse } from './warehouse.ts';

/**
 * The entry of the demo's own server processes: `child.js gateway <seed>`, `child.js warehouse`, `child.js chat`.
 * Tells its parent the port, and ends with it: when the parent dies, however it dies, the channel between them closes.
 */
async function start(name: string | undefined, seed: string | undefined): Promise<JsonServer> {
  const { DEMO_DATABASE_URL: databaseUrl = '' } = process.env;
  switch (name) {
    case 'gateway':
      return startGateway(databaseUrl, Number(seed));
    case 'warehouse':
      return startWarehouse(databaseUrl);
    case 'chat':
      return startChat();
    default:
      throw new Error(`the demo has no server "${name}"`);
  }
}

let ending = false;

async function end(server: JsonServer): Promise<void> {
  if (ending) return;
  ending = true;
  await server.close();
  process.exit(0);
}

const server = await start(process.argv[2], process.argv[3]);
process.on('disconnect', () => void end(server));
process.on('SIGTERM', () => void end(server));
if (process.connected) process.send?.({ port: server.port });
else await end(server);
