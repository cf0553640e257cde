import { z } from 'zod';
import { hostAndPort, secret } from './scalar.ts';

export const queueSchema = z.strictObject({
  url: secret('redis://, rediss:// or postgres://; left out: QUEUE_URL, else the store').optional(),
  sentinel: z
    .strictObject({
      name: z.string().describe('name of the master that the Sentinels watch'),
      hosts: z
        .array(hostAndPort)
        .min(1)
        .describe('Sentinels as host:port; queue.url then gives user, password and database'),
      password: secret('Sentinel password').optional(),
    })
    .optional()
    .describe('Redis behind Sentinels'),
  cluster: z
    .array(hostAndPort)
    .optional()
    .describe('nodes of a Redis Cluster as host:port; queue.url then gives user and password'),
  tls: z
    .strictObject({
      ca: z.string().optional().describe('certificate authority of the server, as PEM text'),
      rejectUnauthorized: z.boolean().default(true).describe('refuse a certificate that cannot be verified'),
    })
    .optional()
    .describe('how a rediss:// server is verified'),
});
