import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { ChannelConfig } from '../../config/schema.ts';
import type { Channel, Delivered } from '../channel.ts';
import { type AlertMessage, renderText } from '../message.ts';
import { type Answer, parseJson, post } from './post.ts';

type DingtalkConfig = Extract<ChannelConfig, { type: 'dingtalk' }>;

/** The robot refuses a longer body (errcode 460101) and nothing of it is shown. */
const BODY_BYTES = 20_000;
/** Over the limit of 20 a minute the robot is blocked for ten minutes. */
const TOO_FAST = new Set([130101, 90030]);
const BLOCKED_MS = 600_000;
const TOO_LONG = 460101;

const answerSchema = z.object({ errcode: z.number(), errmsg: z.string().default('') });

/**
 * A DingTalk custom robot. Success is 200 and `errcode` 0: errors come with 200 too. The signature is made for each
 * send, since it is refused an hour after its timestamp. Plain text, and nobody is called (`isAtAll` is false).
 */
export function createDingtalkChannel(
  name: string,
  config: DingtalkConfig,
  redact: (text: string) => string,
): Channel {
  return {
    name,
    rate: config.rate,
    send(message, signal) {
      const secrets = config.secret === undefined ? [] : [config.secret];
      const query = config.secret === undefined ? {} : signature(config.secret.reveal(), Date.now());
      return post(
        { url: config.url, query, body: bodyOf(message, config.keyword), secrets, redact },
        signal,
        judge,
      );
    },
  };
}

/** URL-encoded once, by the address itself. */
function signature(secret: string, nowMs: number): Record<string, string> {
  const timestamp = String(nowMs);
  return { timestamp, sign: createHmac('sha256', secret).update(`${timestamp}\n${secret}`).digest('base64') };
}

/** JSON escapes make a text longer by what it holds, so the text is cut until the body fits. */
function bodyOf(message: AlertMessage, keyword: string | undefined): string {
  let bytes = BODY_BYTES;
  for (;;) {
    const content = withKeyword(renderText(message, { bytes }), keyword);
    const body = JSON.stringify({
      msgtype: 'text',
      text: { content },
      at: { isAtAll: false, atMobiles: [] },
    });
    const over = Buffer.byteLength(body) - BODY_BYTES;
    if (over <= 0 || bytes === 0) return body;
    bytes = Math.max(0, bytes - over);
  }
}

/** A robot with keywords refuses every text without one. */
function withKeyword(text: string, keyword: string | undefined): string {
  return keyword === undefined || text.includes(keyword) ? text : `${keyword}\n${text}`;
}

function judge({ status, text, retryAfterMs }: Answer): Delivered {
  const failed = { sent: false as const, permanent: false, retryAfterMs };
  if (status !== 200) return { ...failed, reason: `${status}: ${text}` };
  const answer = answerSchema.safeParse(parseJson(text));
  if (!answer.success) return { ...failed, reason: `200 with an answer that is not the robot's: ${text}` };
  const { errcode, errmsg } = answer.data;
  if (errcode === 0) return { sent: true, answer: text };
  return {
    ...failed,
    permanent: errcode === TOO_LONG,
    retryAfterMs: TOO_FAST.has(errcode) ? BLOCKED_MS : retryAfterMs,
    reason: `errcode ${errcode}: ${errmsg}`,
  };
}
