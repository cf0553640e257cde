import type { ChannelConfig } from '../../config/schema.ts';
import type { Channel, Delivered } from '../channel.ts';
import { cutText, oneLine } from '../cut-text.ts';
import { type AlertMessage, renderText } from '../message.ts';
import { type Answer, post } from './post.ts';

type SlackConfig = Extract<ChannelConfig, { type: 'slack' }>;

/** A section holds 3000 characters; bytes are never fewer. */
const SECTION_BYTES = 3000;
const NOTIFICATION_BYTES = 500;
/** The same message will not be taken later either. */
const REFUSED = new Set([400, 403, 404, 410]);

/**
 * A Slack incoming webhook. Success is 200 with exactly `ok` as body. `&`, `<` and `>` are escaped and nothing but
 * that markup is parsed (`verbatim`), so no key or error text becomes a mention, a link or a channel name.
 */
export function createSlackChannel(
  name: string,
  config: SlackConfig,
  redact: (text: string) => string,
): Channel {
  return {
    name,
    rate: config.rate,
    send: (message, signal) =>
      post({ url: config.url, body: bodyOf(message), secrets: [], redact }, signal, judge),
  };
}

function bodyOf(message: AlertMessage): string {
  const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', verbatim: true, text } });
  const blocks = [section(renderText({ ...message, link: null }, { bytes: SECTION_BYTES, encode }))];
  if (message.link !== null) blocks.push(section(`<${linkTarget(message.link)}|Open the page>`));
  return JSON.stringify({
    // What notifications and clients without blocks show.
    text: cutText(oneLine(`${message.title} · count ${message.count}`), NOTIFICATION_BYTES, encode),
    blocks,
    unfurl_links: false,
    unfurl_media: false,
  });
}

function encode(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A bar would end the address. */
function linkTarget(link: string): string {
  return encode(oneLine(link).replaceAll('|', '%7C'));
}

function judge({ status, text, retryAfterMs }: Answer): Delivered {
  if (status === 200 && text === 'ok') return { sent: true, answer: 'ok' };
  const permanent = REFUSED.has(status);
  const wait = status === 429 ? (retryAfterMs ?? 30_000) : retryAfterMs;
  return { sent: false, permanent, retryAfterMs: wait, reason: `${status}: ${text || 'empty answer'}` };
}
