#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { VERSION } from '../app.ts';
import { ConfigError } from '../config/config-error.ts';
import { EXIT, TrueupError } from '../error.ts';
import { SideError } from '../reconcile/side.ts';
import { isTransientDatabaseError } from '../store/database.ts';
import { registerCheck } from './commands/check.ts';
import { registerDecisions } from './commands/decisions.ts';
import { registerDemo } from './commands/demo.ts';
import { registerDiffs } from './commands/diffs.ts';
import { registerDoctor } from './commands/doctor.ts';
import { registerHolds } from './commands/holds.ts';
import { registerInit } from './commands/init.ts';
import { registerRun } from './commands/run.ts';
import { registerRuns } from './commands/runs.ts';
import { registerStore } from './commands/store.ts';
import { registerTargets } from './commands/targets.ts';
import { registerUp } from './commands/up.ts';
import { say } from './output.ts';
import { printable } from './session.ts';

const program = new Command('trueup')
  .description(
    'Makes two systems agree: compares them by business key, repairs what differs, never faster than a watermark',
  )
  .version(VERSION)
  .option('-c, --config <file>', 'config file (TRUEUP_CONFIG; default config/trueup.yaml)')
  .option('--format <format>', 'table, json or ndjson')
  .exitOverride()
  .showSuggestionAfterError();

for (const register of [
  registerInit,
  registerCheck,
  registerUp,
  registerStore,
  registerDoctor,
  registerDemo,
  registerRun,
  registerRuns,
  registerDiffs,
  registerDecisions,
  registerHolds,
  registerTargets,
]) {
  register(program);
}

/** Who reads the answer may stop reading (`trueup diffs | head -1`): the command ends as it would have. */
function toleratesClosedPipe(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

/** Ends the process with the code that tells a script what happened (`EXIT`). */
async function main(): Promise<void> {
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.clean : EXIT.usage;
  if (error instanceof ConfigError) {
    say(error.message);
    return error.exit;
  }
  if (error instanceof TrueupError) {
    say(printable(`error: ${error.message}${error.hint ? `\n  ${error.hint}` : ''}`));
    return error.exit;
  }
  if (error instanceof SideError) {
    say(printable(`error: ${error.message}`));
    return error.exit;
  }
  const words = error instanceof Error ? error.message : String(error);
  if (isTransientDatabaseError(error)) {
    say(printable(`error: the store cannot be reached: ${words}`));
    say('  check DATABASE_URL (store.url), that the server runs, and that this host may reach it');
    return EXIT.temporary;
  }
  say(printable(`unexpected error: ${error instanceof Error ? (error.stack ?? words) : words}`));
  return EXIT.unexpected;
}

toleratesClosedPipe(process.stdout);
toleratesClosedPipe(process.stderr);
await main();
