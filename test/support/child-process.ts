import { type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { until } from './wait.ts';

export interface Line {
  readonly from: 'stdout' | 'stderr';
  readonly text: string;
}

export interface ChildNode {
  readonly pid: number;
  /** What it wrote so far, line by line. */
  readonly lines: readonly Line[];
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** The first line, written before or later, that matches. Throws with its output when it ends without one. */
  waitForLine(pattern: RegExp, options?: { timeoutMs?: number }): Promise<string>;
  kill(signal: NodeJS.Signals): void;
  /** SIGKILL if it still runs, and waits for its end: for `afterEach`. */
  stop(): Promise<void>;
}

export interface ChildOptions {
  /** Added to this process's environment; undefined takes a variable away. */
  readonly env?: Record<string, string | undefined>;
  readonly cwd?: string;
  /** In a process group of its own, which then has the number `pid`. */
  readonly detached?: boolean;
}

/** Runs node with `args` as a process of its own. */
export function spawnNode(args: readonly string[], options: ChildOptions = {}): ChildNode {
  const { env, ...rest } = options;
  const spawnOptions: SpawnOptions = {
    ...rest,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  };
  const child = spawn(process.execPath, args, spawnOptions);
  const { pid, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null) throw new Error('node could not be started');
  const lines: Line[] = [];
  collect(stdout, 'stdout', lines);
  collect(stderr, 'stderr', lines);
  let ended = false;
  const exited = once(child, 'close').then(([code, signal]) => {
    ended = true;
    return { code, signal };
  });
  const output = () => lines.map(({ text }) => text).join('\n');
  return {
    pid,
    lines,
    exited,
    async waitForLine(pattern, waitOptions) {
      const matching = () => lines.find(({ text }) => pattern.test(text))?.text;
      await until(`process ${pid} writes ${pattern}`, () => matching() ?? ended, waitOptions).catch(
        (cause: unknown) => {
          throw new Error(`process ${pid} did not write ${pattern}, only:\n${output()}`, { cause });
        },
      );
      const found = matching();
      if (found === undefined) throw new Error(`process ${pid} ended without ${pattern}:\n${output()}`);
      return found;
    },
    kill(signal) {
      child.kill(signal);
    },
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

function collect(stream: Readable, from: Line['from'], lines: Line[]): void {
  createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (text) =>
    lines.push({ from, text }),
  );
}
