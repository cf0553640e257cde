import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';

export interface TlsProxy {
  /** The same URL with the proxy's host and port, and TLS demanded. */
  url(original: string): string;
  /** Connections that were encrypted. */
  accepted(): number;
  close(): Promise<void>;
}

/** Speaks TLS to clients of a PostgreSQL server that has none, as a server with `ssl = on` does. */
export async function startTlsProxy(target: { host: string; port: number }): Promise<TlsProxy> {
  const context = createSecureContext(selfSigned());
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server = createServer((client) => {
    sockets.add(client);
    client.on('error', ignore);
    // The client asks for TLS with one message of eight bytes, and is told yes with one byte.
    client.once('data', () => {
      client.write('S');
      accepted += 1;
      const inner = new TLSSocket(client, { isServer: true, secureContext: context });
      const upstream = connect(target);
      sockets.add(upstream);
      for (const [one, other] of [
        [inner, upstream],
        [upstream, inner],
      ] as const) {
        one.on('error', ignore);
        one.on('close', () => other.destroy());
      }
      inner.pipe(upstream).pipe(inner);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the proxy has no port');
  return {
    url(original) {
      const url = new URL(original);
      url.hostname = '127.0.0.1';
      url.port = String(address.port);
      url.searchParams.set('sslmode', 'no-verify');
      return url.href;
    },
    accepted: () => accepted,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The other end learns of it by the close that follows. */
function ignore(): void {}

/** A certificate of its own key, in the few fields that X.509 demands. */
function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  // ecdsa-with-SHA256
  const algorithm = der(0x30, Buffer.from('06082a8648ce3d040302', 'hex'));
  const commonName = der(0x30, Buffer.from('0603550403', 'hex'), der(0x0c, Buffer.from('localhost')));
  const name = der(0x30, der(0x31, commonName));
  const validity = der(
    0x30,
    der(0x17, Buffer.from('200101000000Z')),
    der(0x17, Buffer.from('490101000000Z')),
  );
  const serial = der(0x02, Buffer.from([1]));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const body = der(0x30, serial, algorithm, name, validity, name, spki);
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const cert = der(0x30, body, algorithm, signature).toString('base64').replace(/.{64}/g, '$&\n');
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${cert}\n-----END CERTIFICATE-----\n`,
  };
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}
