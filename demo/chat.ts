import { type JsonServer, startJsonServer } from './json-server.ts';

/** A chat room that takes webhooks. It keeps the messages for whoever asks. */
export async function startChat(): Promise<JsonServer> {
  const messages: unknown[] = [];
  return startJsonServer({
    'POST /alerts': (call) => {
      messages.push(call.body);
      return { status: 200, body: { ok: true } };
    },
    'GET /alerts': () => ({ status: 200, body: messages }),
  });
}
