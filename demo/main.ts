import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pc from 'picocolors';
import { parse } from 'yaml';
import { check, type Report } from './check.ts';
import { readEvidence } from './evidence.ts';
import { alertsOf, follow } from './follow.ts';
import { HELP, type Options, parseOptions } from './options.ts';
import { Processes } from './processes.ts';
import { Product } from './product.ts';
import { type Progress, progressOn } from './progress.ts';
import { writeInFlight } from './seed.ts';
import { setStage } from './stage.ts';
import { nextSteps, summaryOf } from './summary.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CONFIG = join(ROOT, 'config', 'demo.yaml');
const NAMES = ['payments', 'warehouse'];
/** From the start of the demo; a run takes about half of it. */
const BOUND_MS = 170_000;

const EXIT_BY_SIGNAL = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

class Stopped extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super('stopped');
    this.exitCode = exitCode;
  }
}

async function main(): Promise<number> {
  const parsed = parseOptions(process.argv.slice(2));
  if (parsed.kind === 'help') {
    process.stdout.write(HELP);
    return 0;
  }
  if (parsed.kind === 'wrong') {
    process.stderr.write(`${parsed.message}\n`);
    return 2;
  }
  const stop = new AbortController();
  listenForSignals(stop);
  // With --json, stdout belongs to the one object.
  const progress = progressOn(parsed.options.json ? process.stderr : process.stdout);
  const closers: (() => Promise<void>)[] = [];
  try {
    const report = await perform(parsed.options, progress, stop, (close) => closers.push(close));
    return report.failures.length === 0 ? 0 : 1;
  } catch (error) {
    const reason: unknown = stop.signal.aborted ? stop.signal.reason : error;
    if (reason instanceof Stopped) return reason.exitCode;
    progress.print(pc.red(`The demo failed: ${reason instanceof Error ? reason.message : String(reason)}`));
    return 1;
  } finally {
    for (const close of closers.reverse()) await close().catch((error: unknown) => console.error(error));
  }
}

async function perform(
  options: Options,
  progress: Progress,
  stop: AbortController,
  closing: (close: () => Promise<void>) => void,
): Promise<Report> {
  const startedAt = performance.now();
  const { signal } = stop;
  const dir = join(ROOT, '.trueup', 'demo');
  const processes = new Processes((name, code) =>
    stop.abort(
      new Error(`${name} ended with code ${code}; its last words:\n${lastLines(join(dir, 'trueup.log'))}`),
    ),
  );
  const perMinute = await watermarkOf('gateway');
  const stage = await setStage({ seed: options.seed, dir, processes, progress, signal, closing });
  signal.throwIfAborted();

  const product = new Product({
    processes,
    cli: join(ROOT, 'dist', 'cli', 'main.js'),
    config: CONFIG,
    ...stage,
    signal,
  });
  progress.step('starting trueup: trueup up --config config/demo.yaml');
  await product.up();
  progress.step(
    `comparing the last three hours: trueup run ${NAMES.join(' ')} --last 3h --mode compensate --detach`,
  );
  await writeInFlight(stage.databases.shop, stage.scenario);
  await product.run(...NAMES, '--last', '3h', '--mode', 'compensate', '--detach');
  const runs = await follow({
    ...stage,
    product,
    names: NAMES,
    perMinute,
    progress,
    signal,
    deadline: startedAt + BOUND_MS,
  });
  const alerts = await alertsOf({ chatUrl: stage.chatUrl, signal });
  progress.step('counting in the tables of the three systems');
  const report = check({
    scenario: stage.scenario,
    evidence: await readEvidence(stage.databases),
    runs,
    alerts,
    perMinute,
    seconds: (performance.now() - startedAt) / 1000,
  });
  progress.print(summaryOf(report, pc.isColorSupported && process.stdout.isTTY === true && !options.json));
  progress.print(nextSteps({ ...stage, serve: options.serve }));
  if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`);
  if (options.serve) await untilStopped(signal);
  return report;
}

function lastLines(file: string): string {
  if (!existsSync(file)) return `nothing in ${file}`;
  return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
}

/** The watermark in force, from the same file that trueup reads. */
async function watermarkOf(target: string): Promise<number> {
  const config = parse(await readFile(CONFIG, 'utf8')) as { targets: Record<string, { watermark: number }> };
  const watermark = config.targets[target]?.watermark;
  if (typeof watermark !== 'number') throw new Error(`config/demo.yaml sets no watermark for ${target}`);
  return watermark;
}

/** The end of a serving demo is no failure, so this resolves. A process that dies meanwhile is one. */
async function untilStopped(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }
  if (!(signal.reason instanceof Stopped)) signal.throwIfAborted();
}

/** The first signal ends the demo in order, the second one at once: its processes then end by themselves. */
function listenForSignals(stop: AbortController): void {
  for (const [name, code] of Object.entries(EXIT_BY_SIGNAL)) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(code);
      stop.abort(new Stopped(code));
    });
  }
}

// What nobody caught ends the process, and the channels to the others with it.
process.exitCode = await main();
