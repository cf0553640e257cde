import type { Command } from 'commander';
import { applyConfig, prepareStore } from '../../app.ts';
import { readMeta } from '../../store/meta.ts';
import { printObject } from '../output.ts';
import { actor, openStoreAlone, withStore } from '../session.ts';

export function registerStore(program: Command): void {
  program
    .command('migrate')
    .description('makes or updates the tables of the store')
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgres://… trueup migrate')
    .action(async (_options, command: Command) => {
      const { session, store } = await openStoreAlone(command);
      try {
        printObject(session.format, { applied: await prepareStore(store, session.logger) });
      } finally {
        await store.close();
      }
    });
  program
    .command('apply')
    .description('stores this config as a revision and makes it the one that every process follows')
    .addHelpText('after', '\nExample:\n  trueup apply --config config/trueup.yaml')
    .action((_options, command: Command) =>
      withStore(command, async ({ loaded, format }, { db }) => {
        const before = (await readMeta(db)).activeRevision;
        const revision = await applyConfig(db, loaded, actor());
        printObject(format, { revision, before, changed: before !== revision });
      }),
    );
}
