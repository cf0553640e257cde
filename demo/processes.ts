import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

const PATIENCE_MS = 20_000;

/** What a short command said. */
export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The processes of one demo. All stand apart from the terminal, so that Ctrl-C reaches the demo alone and it can end
 * them in order; and all end by themselves when the demo is gone.
 */
export class Processes {
  readonly #running: ChildProcess[] = [];
  readonly #ending = new AbortController();
  readonly #onDeath: (name: string, code: number | null) => void;

  /** `onDeath` hears of a process that ended before its time. */
  constructor(onDeath: (name: string, code: number | null) => void) {
    this.#onDeath = onDeath;
  }

  /** Starts one of the demo's own servers. Resolves with its address. */
  async server(name: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
    const child = fork(path('./child.js'), [name, ...args], {
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: [],
    });
    this.#note(name, child);
    const port = await new Promise<number>((resolve, reject) => {
      child.once('message', (message: { port: number }) => resolve(message.port));
      child.once('exit', (code) => reject(new Error(`the ${name} ended at its start with code ${code}`)));
    });
    return `http://127.0.0.1:${port}`;
  }

  /** Starts a command that goes on running. Its output goes to `logFile`. */
  daemon(command: readonly string[], env: NodeJS.ProcessEnv, logFile: string): void {
    const log = openSync(logFile, 'w', 0o600);
    const child = fork(path('./tether.js'), command, {
      env: { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', log, log, 'ipc'],
      execArgv: [],
    });
    closeSync(log);
    this.#note('trueup', child);
  }

  /** Runs a command to its end, at most `timeoutMs`. */
  async command(command: readonly string[], env: NodeJS.ProcessEnv, timeoutMs: number): Promise<Said> {
    const [file = '', ...args] = command;
    const child = spawn(file, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      signal: this.#ending.signal,
    });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, stdout, stderr };
  }

  /** Ends all of them, the last one first, and waits until they are gone. */
  async end(): Promise<void> {
    this.#ending.abort();
    for (const child of this.#running.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = once(child, 'exit');
      const kill = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
      if (child.connected) child.disconnect();
      await gone;
      clearTimeout(kill);
    }
  }

  #note(name: string, child: ChildProcess): void {
    this.#running.push(child);
    child.once('exit', (code) => {
      if (!this.#ending.signal.aborted) this.#onDeath(name, code);
    });
  }
}

/** A port of the loopback interface that was free a moment ago. */
export async function sparePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

function path(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
