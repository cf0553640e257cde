import type { ChannelConfig } from '../../config/schema.ts';
import type { Channel } from '../channel.ts';
import { createDingtalkChannel } from './dingtalk.ts';
import { createSlackChannel } from './slack.ts';
import { createWebhookChannel } from './webhook.ts';

/**
 * The channel that a config describes. Nothing is connected before the first send. `redact` hides secrets of the rest
 * of the configuration in what a channel says about a delivery; its own are hidden in any case.
 */
export function createChannel(
  name: string,
  config: ChannelConfig,
  redact: (text: string) => string = (text) => text,
): Channel {
  switch (config.type) {
    case 'webhook':
      return createWebhookChannel(name, config, redact);
    case 'slack':
      return createSlackChannel(name, config, redact);
    case 'dingtalk':
      return createDingtalkChannel(name, config, redact);
  }
}
