import type { ChannelConfig } from '../../config/schema.ts';
import type { Channel } from '../channel.ts';
import { createDingtalkChannel } from './dingtalk.ts';
import { createSlackChannel } from './slack.ts';
import { createWebhookChannel } from './webhook.ts';

/** The channel that a config describes. Nothing is connected before the first send. */
export function createChannel(name: string, config: ChannelConfig): Channel {
  switch (config.type) {
    case 'webhook':
      return createWebhookChannel(name, config);
    case 'slack':
      return createSlackChannel(name, config);
    case 'dingtalk':
      return createDingtalkChannel(name, config);
  }
}
