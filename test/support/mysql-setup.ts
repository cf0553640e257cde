import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { findMysql } from './mysql-server.ts';

declare module 'vitest' {
  interface ProvidedContext {
    mysqlUrl: string;
  }
}

/** The MariaDB or MySQL that the tests of a run share. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), 'trueup-test-'));
  await chmod(dir, 0o711);
  const clean = () => rm(dir, { recursive: true, force: true });
  try {
    const server = await findMysql(dir);
    project.provide('mysqlUrl', server.url);
    return async () => {
      await server.stop();
      await clean();
    };
  } catch (error) {
    await clean();
    throw error;
  }
}
