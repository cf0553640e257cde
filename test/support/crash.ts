import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type ChildNode, type ChildOptions, spawnNode } from './child-process.ts';

const DIST = new URL('../../dist/', import.meta.url);

/** Path of a built file, for processes of their own: node 20 runs no TypeScript. `npm test` builds first. */
export function built(file: string): string {
  const path = fileURLToPath(new URL(file, DIST));
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build before the tests`);
  return path;
}

/**
 * Starts the `trueup` command as a process of its own that a test can kill at any moment. Call `stop()` of what it
 * returns in `afterEach`.
 */
export function spawnWorker(args: readonly string[], env: ChildOptions['env'] = {}): ChildNode {
  return spawnNode([built('cli/main.js'), ...args], { env });
}
