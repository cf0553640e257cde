import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { openDatabase } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrate.ts';
import { findRedis } from './redis-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgresUrl: string;
    redisUrl: string;
  }
}

/** The servers that all tests of a run share: one PostgreSQL of their own, with a migrated template, and a Redis. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), 'trueup-test-'));
  // As root the server runs as another user, who has to get through.
  await chmod(dir, 0o711);
  const stops: (() => Promise<void>)[] = [() => rm(dir, { recursive: true, force: true })];
  async function teardown(): Promise<void> {
    for (const stop of stops.splice(0).reverse()) await stop();
  }
  try {
    const postgres = await startEmbeddedPostgres({ dir: join(dir, 'postgres'), durable: false });
    stops.push(
      () => rm(postgres.dir, { recursive: true, force: true }),
      () => postgres.stop(),
    );
    await makeTemplate(await postgres.ensureDatabase('trueup_template'));
    const redis = await findRedis(dir);
    stops.push(() => redis.stop());
    project.provide('postgresUrl', postgres.url);
    project.provide('redisUrl', redis.url);
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}

async function makeTemplate(url: string): Promise<void> {
  const db = openDatabase(url, { applicationName: 'trueup tests' });
  try {
    await migrate(db);
  } finally {
    await db.destroy();
  }
}
