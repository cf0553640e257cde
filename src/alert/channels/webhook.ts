import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { ChannelConfig } from '../../config/schema.ts';
import type { Channel, Delivered } from '../channel.ts';
import { cutText, oneLine } from '../cut-text.ts';
import type { AlertMessage } from '../message.ts';
import { type Answer, parseJson, post } from './post.ts';

type WebhookConfig = Extract<ChannelConfig, { type: 'webhook' }>;

/**
 * Any receiver, by Standard Webhooks (standardwebhooks.com): `webhook-id` stays the same over retries, the timestamp
 * is that of the attempt, and each secret signs, so that a receiver accepts old and new ones while they are rotated.
 * The body is `{type, timestamp, data}` with the whole message as data.
 */
export function createWebhookChannel(
  name: string,
  config: WebhookConfig,
  redact: (text: string) => string,
): Channel {
  const keys = config.secrets.map((secret) => keyOf(secret.reveal()));
  return {
    name,
    rate: config.rate,
    send(message, signal) {
      const body = bodyOf(message);
      const seconds = String(Math.floor(Date.now() / 1000));
      const headers: Record<string, string> = { 'webhook-id': message.id, 'webhook-timestamp': seconds };
      if (keys.length > 0) {
        headers['webhook-signature'] = keys
          .map((key) => sign(key, `${message.id}.${seconds}.${body}`))
          .join(' ');
      }
      for (const [header, value] of Object.entries(config.headers))
        headers[header.toLowerCase()] = value.reveal();
      const secrets = [...config.secrets, ...Object.values(config.headers)];
      return post({ url: config.url, headers, body, secrets, redact }, signal, judge);
    },
  };
}

/** A receiver may refuse more than 20 KB; the worst incident has the longest samples, so these go first. */
const BODY_BYTES = 20_000;

function bodyOf(message: AlertMessage): string {
  for (let samples = MOST_SAMPLES; ; samples = Math.floor(samples / 2)) {
    const body = JSON.stringify({
      type: `alert.${message.status}`,
      timestamp: message.at,
      data: plain(message, samples),
    });
    if (samples === 0 || Buffer.byteLength(body) <= BODY_BYTES) return body;
  }
}

/** A digest has as many samples as it merged. */
const MOST_SAMPLES = 50;

function plain(message: AlertMessage, samples: number): AlertMessage {
  const short = (text: string, bytes: number) => cutText(oneLine(text), bytes);
  return {
    ...message,
    title: short(message.title, 1_000),
    reconciliation: short(message.reconciliation, 1_000),
    detail: message.detail === null ? null : short(message.detail, 1_000),
    samples: message.samples
      .slice(0, samples)
      .map(({ key, text, id }) => ({ key: short(key, 200), text: short(text, 500), id })),
  };
}

/** `whsec_` is followed by base64; a secret without the prefix is taken as base64 too, as the specification has it. */
function keyOf(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
}

function sign(key: Buffer, content: string): string {
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}

function judge({ status, text, retryAfterMs }: Answer): Delivered {
  const ok = status >= 200 && status < 300;
  if (ok && saysFailed(text)) return { ...FAILED, retryAfterMs, reason: `${status} with an error: ${text}` };
  if (ok) return { sent: true, answer: `${status} ${text}` };
  const failed = { ...FAILED, retryAfterMs };
  if (status >= 300 && status < 400) return { ...failed, reason: `${status}: redirects are not followed` };
  if (status === 410)
    return { ...failed, permanent: true, reason: '410: the receiver wants no more messages' };
  if (status === 429 || status === 502 || status === 504)
    return { ...failed, retryAfterMs: retryAfterMs ?? SLOW_DOWN_MS, reason: `${status}: slow down: ${text}` };
  return { ...failed, reason: `${status}: ${text}` };
}

const SLOW_DOWN_MS = 30_000;
const FAILED = { sent: false as const, permanent: false };

/**
 * The standard says that any 2xx is success. Bots of chats say 200 all the same and mean it otherwise, in one of these
 * three ways; any other answer is not read.
 */
const refusalSchema = z.union([
  z.object({ ok: z.literal(false) }),
  z.object({ success: z.literal(false) }),
  z.object({ errcode: z.number().refine((code) => code !== 0) }),
]);

function saysFailed(text: string): boolean {
  return refusalSchema.safeParse(parseJson(text)).success;
}
