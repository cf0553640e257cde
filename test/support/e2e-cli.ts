import type { ChildNode } from './child-process.ts';
import { spawnNode } from './child-process.ts';
import { built } from './crash.ts';

export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** Nothing of the machine that runs the tests may change what a command does. */
const CLEAN = { DATABASE_URL: undefined, QUEUE_URL: undefined, TRUEUP_CONFIG: undefined };

/** Runs the built `trueup` command to its end. */
export async function trueup(args: readonly string[], options: CliOptions = {}): Promise<Said> {
  const child = start(args, options);
  const { code } = await child.exited;
  const text = (from: 'stdout' | 'stderr') =>
    child.lines
      .filter((line) => line.from === from)
      .map((line) => line.text)
      .join('\n');
  return { code, stdout: text('stdout'), stderr: text('stderr') };
}

/** As `trueup`, with its stdout read as one JSON value; throws with what it said when the exit code is another. */
export async function trueupJson<T>(args: readonly string[], options: CliOptions = {}, code = 0): Promise<T> {
  const said = await trueup([...args, '--format', 'json'], options);
  if (said.code !== code) {
    throw new Error(
      `trueup ${args.join(' ')} ended with ${said.code}, not ${code}:\n${said.stderr}\n${said.stdout}`,
    );
  }
  return JSON.parse(said.stdout);
}

/** Starts a command that goes on running. Call `stop()` of what it returns in the end. */
export function start(args: readonly string[], options: CliOptions = {}): ChildNode {
  return spawnNode([built('cli/main.js'), ...args], {
    env: { ...CLEAN, ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
}

export interface Up {
  readonly child: ChildNode;
  readonly url: string;
}

/** `trueup up`, until it takes work. */
export async function up(configPath: string, options: CliOptions = {}): Promise<Up> {
  const child = start(['up', '--config', configPath], options);
  try {
    const line = await child.waitForLine(/"event":"up"/, { timeoutMs: 60_000 });
    return { child, url: JSON.parse(line).http };
  } catch (error) {
    await child.stop();
    throw error;
  }
}
