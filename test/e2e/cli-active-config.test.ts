import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Db, openDatabase } from '../../src/store/database.ts';
import { built } from '../support/crash.ts';
import { createDatabase } from '../support/database.ts';
import { trueup, trueupJson } from '../support/e2e-cli.ts';
import { writeConfig } from '../support/e2e-config.ts';
import { orders } from '../support/e2e-orders.ts';
import { openShop, type Shop } from '../support/e2e-shop.ts';
import { startServer } from '../support/http-server.ts';

/** Commands of a person who has the store's address and nothing else: on call, on another machine, in a hurry. */

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

let shop: Shop;
let db: Db;
let elsewhere: string;
let diffs: readonly { readonly id: string }[];
/** Addresses that only the server's environment knows. */
const SERVER = { BOOKINGS_URL: '', DATA_URL: '' };

beforeAll(async () => {
  shop = await openShop(stops, { target: { watermark: 40 } });
  db = openDatabase(shop.storeUrl, { applicationName: 'trueup-test' });
  stops.push(() => db.destroy());
  elsewhere = await mkdtemp(join(tmpdir(), 'trueup-elsewhere-'));
  stops.push(() => rm(elsewhere, { recursive: true }));
  Object.assign(SERVER, { BOOKINGS_URL: shop.api.url, DATA_URL: shop.data.url });
  /* biome-ignore-start lint/suspicious/noTemplateCurlyInString: the config's own interpolation */
  const config = await writeConfig(
    JSON.parse(
      JSON.stringify({ ...shop.values, store: { url: '${env:DATABASE_URL}' } })
        .replaceAll(shop.api.url, '${env:BOOKINGS_URL}')
        .replaceAll(shop.data.url, '${env:DATA_URL}'),
    ),
  );
  /* biome-ignore-end lint/suspicious/noTemplateCurlyInString: the config's own interpolation */
  stops.push(() => config.remove());
  expect(await trueup(['apply', '--config', config.path], bare(SERVER))).toMatchObject({
    code: 0,
  });
  await shop.data.place(orders('lost', 300));
  ({ diffs } = await trueupJson<{ diffs: { id: string }[] }>(
    ['run', 'orders', '--last', '1h'],
    bare(SERVER),
  ));
}, 120_000);

const bare = (env: Record<string, string> = {}) => ({
  cwd: elsewhere,
  env: { DATABASE_URL: shop.storeUrl, TRUEUP_ACTOR: 'on-call', ...env },
});

describe('from any directory, with the store’s address alone', () => {
  it('hold, watermark and release go by the active configuration', async () => {
    expect(await trueupJson(['hold', 'bookings', '--reason', 'it sweats'], bare())).toEqual({
      target: 'bookings',
      held: 'it sweats',
    });
    expect(await db('gate').where({ gate: 'bookings', purpose: 'send' }).first('held')).toEqual({
      held: 'it sweats',
    });
    expect(await trueupJson(['watermark', 'bookings'], bare())).toMatchObject({ ceiling: 40 });
    const above = await trueup(['watermark', 'bookings', '41', '--reason', 'x'], bare());
    expect(above).toMatchObject({ code: 2, stderr: expect.stringContaining('ceiling of 40') });
    await trueupJson(['release', 'bookings', '--reason', 'it is well'], bare());
  });

  it('an unknown name is refused with the known ones', async () => {
    const said = await trueup(['hold', 'booking', '--reason', 'x'], bare());
    expect(said.code).toBe(2);
    expect(said.stderr).toMatch(
      /no target "booking"[\s\S]*did you mean "bookings"\? known targets: bookings/,
    );
    expect(await db('gate').where({ gate: 'booking' })).toEqual([]);
  });

  it('replay reads the sides of the active configuration, and says which variable it lacks', async () => {
    const id = diffs[0]?.id ?? '';
    expect(await trueupJson(['replay', id, '--reason', 'again'], bare(SERVER))).toEqual([
      { id, done: true, what: 'planned' },
    ]);
    const lacking = await trueup(['replay', id, '--reason', 'again'], bare());
    expect(lacking).toMatchObject({ code: 2, stderr: expect.stringContaining('BOOKINGS_URL') });
  });

  it('diffs can be piped into something that stops reading', async () => {
    const command = `"${process.execPath}" "${built('cli/main.js')}" diffs --limit 300 --format ndjson | head -1`;
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', `set -o pipefail; ${command}`], {
      ...bare(),
      env: { ...process.env, ...bare().env },
    });
    expect(JSON.parse(stdout)).toMatchObject({ reconciliation: 'orders', state: 'open' });
    expect(stderr).toBe('');
  });

  it('a local file that differs does not count, and that is said once', async () => {
    const { targets } = shop.values as { targets: { bookings: object } };
    const other = await writeConfig({
      ...shop.values,
      targets: { other: { ...targets.bookings }, bookings: { ...targets.bookings, watermark: 99 } },
    });
    stops.push(() => other.remove());
    const said = await trueup(['watermark', 'bookings', '--format', 'json', '--config', other.path], bare());
    expect(JSON.parse(said.stdout)).toMatchObject({ ceiling: 40 });
    expect(said.stderr.match(/differs from the active configuration \(revision \d+\)/g)).toHaveLength(1);
    const unknown = await trueup(['hold', 'other', '--reason', 'x', '--config', other.path], bare());
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('known targets: bookings') });
  });

  it('says what is missing when there is no address, or no active configuration', async () => {
    const nothing = await trueup(['hold', 'bookings', '--reason', 'x'], { cwd: elsewhere });
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringMatching(/DATABASE_URL.*--config/) });
    const empty = await createDatabase();
    stops.push(() => empty.drop());
    const env = { DATABASE_URL: empty.url };
    expect(await trueup(['migrate'], { cwd: elsewhere, env })).toMatchObject({ code: 0 });
    const inactive = await trueup(['hold', 'bookings', '--reason', 'x'], { cwd: elsewhere, env });
    expect(inactive).toMatchObject({ code: 2, stderr: expect.stringMatching(/no configuration is active/) });
  });
});

describe('exit codes', () => {
  it('5 when the store has no schema yet, or a newer one', async () => {
    const database = await createDatabase();
    stops.push(() => database.drop());
    const options = { cwd: elsewhere, env: { DATABASE_URL: database.url } };
    const missing = await trueup(['diffs'], options);
    expect(missing).toMatchObject({ code: 5, stderr: expect.stringContaining('trueup migrate') });
    await trueup(['migrate'], options);
    const store = openDatabase(database.url, { applicationName: 'trueup-test' });
    stops.push(() => store.destroy());
    await store('meta').update({ oldest_app: 1000 });
    const tooNew = await trueup(['diffs'], options);
    expect(tooNew).toMatchObject({ code: 5, stderr: expect.stringContaining('install the newer') });
  });

  it('75 when the store cannot be reached, without its password', async () => {
    const server = await startServer(() => {});
    await server.close();
    const env = { DATABASE_URL: `postgres://me:planted-4711@127.0.0.1:${server.port}/store` };
    const said = await trueup(['diffs'], { cwd: elsewhere, env });
    expect(said).toMatchObject({
      code: 75,
      stdout: '',
      stderr: expect.stringMatching(/ECONNREFUSED[\s\S]*DATABASE_URL or store\.url/),
    });
    expect(said.stderr).not.toContain('planted-4711');
  });

  it('75 when a side cannot be reached', async () => {
    const gone = await writeConfig({
      ...shop.values,
      reconciliations: JSON.parse(
        JSON.stringify(shop.values['reconciliations']).replaceAll(new URL(shop.data.url).host, '127.0.0.1:1'),
      ),
    });
    stops.push(() => gone.remove());
    const said = await trueup(['run', 'orders', '--last', '1h', '--config', gone.path], bare());
    expect(said).toMatchObject({ code: 75, stdout: '' });
  });

  it('1 when a decision could not be carried out', async () => {
    const said = await trueup(['resolve', '999999', '--reason', 'x'], bare());
    expect(said).toMatchObject({ code: 1, stdout: expect.stringContaining('no open diff') });
  });
});
