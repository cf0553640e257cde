import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { createBackend } from '../../src/jobs/backend.ts';
import { createDatabase } from '../support/database.ts';
import { redisUrl } from '../support/redis.ts';
import { sparePort } from '../support/spare-port.ts';
import { until } from '../support/wait.ts';
import { describeQueue } from './describe-queue.ts';

describeQueue('PostgreSQL', createDatabase);
// Namespaces are random, so tests share one Redis.
describeQueue('Redis', async () => ({ url: redisUrl(), drop: async () => {} }));

describe('the queue on PostgreSQL', () => {
  it('holds six connections at most, whatever its queues and workers do', async ({ onTestFinished }) => {
    const database = await createDatabase();
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    const backend = createBackend({ url: new Secret(database.url), options: {} }, 'one', {
      onError: () => {},
    });
    onTestFinished(async () => {
      await backend.close();
      await admin.end();
      await database.drop();
    });
    const connections = async () =>
      (
        await admin.query(
          'select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
        )
      ).rowCount ?? 0;
    await backend.open();
    const queues = ['ticks', 'runs', 'sends', 'retries'] as const;
    let done = 0;
    const consumers = queues.map((name) =>
      backend.consume(name, 64, async () => {
        done += 1;
      }),
    );
    let most = 0;
    for (let round = 0; round < 10; round++) {
      const jobs = Array.from({ length: 50 }, (_, index) => ({ id: `c${round}-${index}`, data: {} }));
      await Promise.all(queues.map((name) => backend.add(name, jobs)));
      await backend.keepTicks([]);
      most = Math.max(most, await connections());
    }
    await until('all have run', async () => {
      most = Math.max(most, await connections());
      return done === 2000;
    });
    expect(most).toBeGreaterThan(2);
    expect(most).toBeLessThanOrEqual(6);
    for (const consumer of consumers) await consumer.close(5000);
    await backend.close();
    await until('all are closed', async () => (await connections()) === 0);
  });

  it('goes on when the server cuts all of its connections', async ({ onTestFinished }) => {
    const database = await createDatabase();
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    const backend = createBackend({ url: new Secret(database.url), options: {} }, 'one', {
      onError: () => {},
    });
    onTestFinished(async () => {
      await backend.close();
      await admin.end();
      await database.drop();
    });
    await backend.open();
    const seen: string[] = [];
    const consumers = (['sends', 'retries'] as const).map((name) =>
      backend.consume(name, 4, async (data) => {
        seen.push(`${name} ${data['id']}`);
      }),
    );
    const add = (id: string) =>
      until(`job ${id} is added`, async () => {
        for (const name of ['sends', 'retries'] as const) await backend.add(name, [{ id, data: { id } }]);
        return true;
      });
    await add('before');
    await until('both have run', () => seen.length === 2);
    await admin.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    await add('after');
    await until('both have run again', () => seen.length === 4, { timeoutMs: 15_000 });
    expect(seen.slice(2).sort()).toEqual(['retries after', 'sends after']);
    for (const consumer of consumers) await consumer.close(5000);
  });
});

describe('an unreachable queue', () => {
  it.each(['redis', 'postgres'])('says which server on %s, and hides the password', async (kind) => {
    const url = `${kind}://user:planted-secret@127.0.0.1:${await sparePort()}/0`;
    const opening = createBackend({ url: new Secret(url), options: {} }, 'x', { onError: () => {} }).open();
    await expect(opening).rejects.toMatchObject({ code: 'TRU_QUEUE_UNREACHABLE', exit: 75 });
    await expect(opening).rejects.toThrow(/127\.0\.0\.1/);
    await expect(opening).rejects.not.toThrow(/planted-secret/);
  });
});
