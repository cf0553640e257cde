import { z } from 'zod';
import { duration, name, secret } from './scalar.ts';

const rate = z.int().min(1).default(20).describe('most messages in 60 seconds');

export const channelSchema = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('webhook').describe('JSON to an address of your own, signed as Standard Webhooks'),
    rate,
    url: secret('address'),
    secrets: z
      .array(secret('whsec_ signing secret'))
      .default([])
      .describe('whsec_ signing secrets (Standard Webhooks); several while rotating; none: not signed'),
    headers: z.record(z.string(), secret('header value')).default({}).describe('sent with each message'),
  }),
  z.strictObject({
    type: z.literal('slack').describe('a Slack channel'),
    rate,
    url: secret('incoming webhook address'),
  }),
  z.strictObject({
    type: z.literal('dingtalk').describe('a DingTalk robot'),
    rate,
    url: secret('robot address with its access_token'),
    secret: secret('SEC… signing secret; left out: not signed').optional(),
    keyword: z
      .string()
      .optional()
      .describe('put before a text that lacks it, for robots that demand a keyword'),
  }),
]);

export const alertsSchema = z.strictObject({
  channels: z.record(name, channelSchema).default({}).describe('where alerts can go, by a name you choose'),
  warning: z.array(name).default([]).describe('channels for what is being repaired'),
  action: z.array(name).default([]).describe('channels for what needs a person'),
  repeat: duration('open alerts are repeated after this').prefault('4h'),
  link: z.string().optional().describe('address of the page, put into messages'),
});

export type ChannelConfig = z.output<typeof channelSchema>;
