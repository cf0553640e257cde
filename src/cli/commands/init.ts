import { access, mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import type { Catalogue } from '../../config/catalogue.ts';
import { suggest } from '../../config/nearest.ts';
import { proposePair, tableNames } from '../../config/propose.ts';
import { Secret } from '../../config/secret.ts';
import { starterConfig } from '../../config/starter.ts';
import { EXIT, TrueupError } from '../../error.ts';
import { readCatalogue } from '../../reconcile/sides/postgres-catalogue.ts';
import { say } from '../output.ts';

interface InitOptions {
  readonly sourceEnv?: string;
  readonly downstreamEnv?: string;
  readonly sourceTable?: string;
  readonly downstreamTable?: string;
  readonly out: string;
  readonly force?: boolean;
}

const CONNECT_MS = 15_000;

export function registerInit(program: Command): void {
  program
    .command('init')
    .description('asks two databases for tables, keys and time columns, and writes a config')
    .option('--source-env <NAME>', 'environment variable with the source’s postgres:// address')
    .option('--downstream-env <NAME>', 'environment variable with the downstream’s postgres:// address')
    .option('--source-table <table>', 'left out: the table that fits best')
    .option('--downstream-table <table>', 'left out: the table that fits best')
    .option('--out <file>', 'where to write', 'config/trueup.yaml')
    .option('--force', 'write over an existing file')
    .addHelpText(
      'after',
      '\nExample:\n  trueup init --source-env SHOP_URL --downstream-env LEDGER_URL --out config/orders.yaml',
    )
    .action(async (options: InitOptions) => {
      await refuseExisting(options);
      const sourceEnv =
        options.sourceEnv ?? (await ask('Environment variable with the source’s address', 'SOURCE_URL'));
      const downstreamEnv =
        options.downstreamEnv ??
        (await ask('Environment variable with the downstream’s address', 'DOWNSTREAM_URL'));
      const [source, downstream] = await Promise.all([catalogueOf(sourceEnv), catalogueOf(downstreamEnv)]);
      assertTable('source', source, options.sourceTable);
      assertTable('downstream', downstream, options.downstreamTable);
      const pair = proposePair(source, downstream, {
        ...(options.sourceTable === undefined ? {} : { sourceTable: options.sourceTable }),
        ...(options.downstreamTable === undefined ? {} : { downstreamTable: options.downstreamTable }),
      });
      if (!pair) {
        throw new TrueupError('TRU_INIT_NO_PAIR', 'no two tables share a unique key', {
          exit: EXIT.usage,
          hint:
            options.sourceTable === undefined || options.downstreamTable === undefined
              ? 'name them with --source-table and --downstream-table, or write the config by hand from config/trueup.yaml'
              : 'give both a unique index on the business key, or write the config by hand from config/trueup.yaml',
        });
      }
      // A file that check refuses would help nobody.
      if (pair.source.time === null) {
        throw new TrueupError(
          'TRU_INIT_NO_TIME',
          `the source's ${pair.source.table} has no timestamp or date column, so the records of a window cannot be found`,
          {
            exit: EXIT.usage,
            hint:
              pair.downstream.time === null
                ? 'choose another table with --source-table, or add a column that says when a record changed'
                : `${pair.downstream.table} of the downstream has one: make that the source, choose another table, or add a column`,
          },
        );
      }
      for (const warning of pair.warnings) say(`look at this: ${warning}`);
      const yaml = starterConfig({
        ...pair,
        source: { ...pair.source, urlEnv: sourceEnv },
        downstream: { ...pair.downstream, urlEnv: downstreamEnv },
      });
      await mkdir(dirname(options.out), { recursive: true });
      await writeFile(options.out, yaml);
      say(
        `wrote ${options.out}: ${pair.source.table} against ${pair.downstream.table} by ${pair.key.join(', ')}`,
      );
      say(`next: trueup check --config ${options.out}`);
    });
}

async function refuseExisting(options: InitOptions): Promise<void> {
  if (options.force) return;
  const exists = await access(options.out).then(
    () => true,
    () => false,
  );
  if (!exists) return;
  throw new TrueupError('TRU_INIT_EXISTS', `${options.out} exists already`, {
    exit: EXIT.usage,
    hint: 'give another --out, or --force to write over it',
  });
}

function assertTable(side: string, catalogue: Catalogue, wanted: string | undefined): void {
  if (wanted === undefined || tableNames(catalogue, wanted).length > 0) return;
  throw new TrueupError('TRU_INIT_NO_TABLE', `the ${side} has no table ${wanted} that this user may read`, {
    exit: EXIT.usage,
    hint: suggest(wanted, tableNames(catalogue), 'tables'),
  });
}

/** Addresses come from the environment, never from the command line, where every user could read the password. */
function catalogueOf(name: string) {
  const url = process.env[name];
  if (!url) {
    throw new TrueupError('TRU_INIT_NO_URL', `the environment variable ${name} is not set`, {
      exit: EXIT.usage,
      hint: `set it first: export ${name}=postgres://user:password@host:5432/database`,
    });
  }
  return readCatalogue(new Secret(url), AbortSignal.timeout(CONNECT_MS));
}

async function ask(question: string, proposal: string): Promise<string> {
  if (!process.stdin.isTTY) {
    throw new TrueupError('TRU_USAGE', `${question}: give it as a flag, since nobody can be asked here`, {
      exit: EXIT.usage,
      hint: 'trueup init --source-env SHOP_URL --downstream-env LEDGER_URL',
    });
  }
  const line = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return (await line.question(`${question} [${proposal}]: `)).trim() || proposal;
  } finally {
    line.close();
  }
}
