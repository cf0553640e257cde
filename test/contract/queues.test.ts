import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { createBackend } from '../../src/jobs/backend.ts';
import { createDatabase } from '../support/database.ts';
import { redisUrl } from '../support/redis.ts';
import { sparePort } from '../support/spare-port.ts';
import { describeQueue } from './describe-queue.ts';

describeQueue('PostgreSQL', createDatabase);
// Namespaces are random, so tests share one Redis.
describeQueue('Redis', async () => ({ url: redisUrl(), drop: async () => {} }));

describe('an unreachable queue', () => {
  it.each(['redis', 'postgres'])('says which server on %s, and hides the password', async (kind) => {
    const url = `${kind}://user:planted-secret@127.0.0.1:${await sparePort()}/0`;
    const opening = createBackend({ url: new Secret(url), options: {} }, 'x', { onError: () => {} }).open();
    await expect(opening).rejects.toMatchObject({ code: 'TRU_QUEUE_UNREACHABLE', exit: 75 });
    await expect(opening).rejects.toThrow(/127\.0\.0\.1/);
    await expect(opening).rejects.not.toThrow(/planted-secret/);
  });
});
