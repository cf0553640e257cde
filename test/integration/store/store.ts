import { afterAll, beforeAll } from 'vitest';
import { type Db, openDatabase } from '../../../src/store/database.ts';
import { createStore } from '../../support/database.ts';

/** A migrated store for the tests of one file. Tests keep apart by the reconciliation's name. */
export function storeForFile(): { readonly db: Db; readonly url: string } {
  let db: Db | undefined;
  let store: { url: string; drop(): Promise<void> } | undefined;
  beforeAll(async () => {
    store = await createStore();
    db = openDatabase(store.url, { applicationName: 'trueup-test' });
  });
  afterAll(async () => {
    await db?.destroy();
    await store?.drop();
  });
  return {
    get db() {
      if (db === undefined) throw new Error('the store is there from beforeAll on');
      return db;
    },
    get url() {
      if (store === undefined) throw new Error('the store is there from beforeAll on');
      return store.url;
    },
  };
}
