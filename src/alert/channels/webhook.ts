import { createHmac } from 'node:crypto';
import type { ChannelConfig } from '../../config/schema.ts';
import type { Channel, Delivered } from '../channel.ts';
import { cutText, oneLine } from '../cut-text.ts';
import type { AlertMessage } from '../message.ts';
import { type Answer, post } from './post.ts';

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
      const body = JSON.stringify({
        type: `alert.${message.status}`,
        timestamp: message.at,
        data: plain(message),
      });
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

/** A digest has as many samples as it merged; a webhook body aims for less than 20 KB. */
function plain(message: AlertMessage): AlertMessage {
  return {
    ...message,
    samples: message.samples.slice(0, 50).map(({ key, text, id }) => ({
      key: cutText(oneLine(key), 200),
      text: cutText(oneLine(text), 500),
      id,
    })),
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
  if (status >= 200 && status < 300) return { sent: true, answer: `${status} ${text}` };
  const failed = { sent: false as const, permanent: false, retryAfterMs };
  if (status >= 300 && status < 400) return { ...failed, reason: `${status}: redirects are not followed` };
  if (status === 410)
    return { ...failed, permanent: true, reason: '410: the receiver wants no more messages' };
  if (status === 429 || status === 502 || status === 504)
    return { ...failed, retryAfterMs: retryAfterMs ?? SLOW_DOWN_MS, reason: `${status}: slow down: ${text}` };
  return { ...failed, reason: `${status}: ${text}` };
}

const SLOW_DOWN_MS = 30_000;
