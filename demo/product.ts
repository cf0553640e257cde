import { setTimeout as sleep } from 'node:timers/promises';
import type { RunReport } from './check.ts';
import type { Processes, Said } from './processes.ts';

/** Generous for a machine that is busy with something else. */
const START_MS = 60_000;
const COMMAND_MS = 30_000;

export interface ProductSetup {
  readonly processes: Processes;
  /** The file that a person would call `trueup`. */
  readonly cli: string;
  readonly config: string;
  readonly env: Readonly<Record<string, string>>;
  readonly httpPort: number;
  readonly logFile: string;
  readonly signal: AbortSignal;
}

/** trueup as anybody would start and ask it: by its command line and its HTTP addresses, nothing else. */
export class Product {
  readonly #setup: ProductSetup;

  constructor(setup: ProductSetup) {
    this.#setup = setup;
  }

  /** `trueup up`, until `/readyz` answers 200. */
  async up(): Promise<void> {
    const { processes, env, logFile, signal } = this.#setup;
    processes.daemon([process.execPath, ...this.#command('up')], env, logFile);
    const until = Date.now() + START_MS;
    while (!(await this.#isReady())) {
      if (Date.now() > until)
        throw new Error(`trueup was not ready within ${START_MS / 1000} s; see ${logFile}`);
      await sleep(100, undefined, { signal });
    }
  }

  /** Hands the windows to the running server, and comes back at once. */
  async run(...args: readonly string[]): Promise<void> {
    await this.#ask('run', ...args);
  }

  /** The first run of each reconciliation; a schedule that happens to tick in between is not ours. */
  async runs(): Promise<RunReport[]> {
    const all = JSON.parse(await this.#ask('runs', '--format', 'json')) as RunReport[];
    const first = new Map<string, RunReport>();
    for (const run of [...all].sort((a, b) => Number(a.id) - Number(b.id))) {
      if (!first.has(run.reconciliation)) first.set(run.reconciliation, run);
    }
    return [...first.values()];
  }

  /** Sums of the metrics by name, whatever their labels. Empty while the server does not answer. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    const text = await this.#get('/metrics');
    return text === undefined ? new Map() : sumMetrics(text);
  }

  async #isReady(): Promise<boolean> {
    return (await this.#get('/readyz')) !== undefined;
  }

  async #get(path: string): Promise<string | undefined> {
    const { httpPort, signal } = this.#setup;
    try {
      const response = await fetch(`http://127.0.0.1:${httpPort}${path}`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]),
      });
      const text = await response.text();
      return response.ok ? text : undefined;
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
  }

  async #ask(...args: readonly string[]): Promise<string> {
    const { processes, env } = this.#setup;
    const said = await processes.command([process.execPath, ...this.#command(...args)], env, COMMAND_MS);
    if (said.code !== 0) throw new Error(sayFailure(args, said));
    return said.stdout;
  }

  #command(...args: readonly string[]): string[] {
    return [this.#setup.cli, ...args, '--config', this.#setup.config];
  }
}

/** Adds up the samples of a Prometheus text by metric name. */
export function sumMetrics(text: string): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)/.exec(line);
    const [, name, value] = match ?? [];
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return sums;
}

function sayFailure(args: readonly string[], said: Said): string {
  return `trueup ${args.join(' ')} ended with code ${said.code}:\n${(said.stderr || said.stdout).trim()}`;
}
