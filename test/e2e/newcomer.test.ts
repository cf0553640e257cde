import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { startEmbeddedPostgres } from '../../src/embedded/postgres.ts';
import { openDatabase } from '../../src/store/database.ts';
import { readRun } from '../../src/store/list-runs.ts';
import { createRun } from '../../src/store/runs.ts';
import { type ChildNode, spawnNode } from '../support/child-process.ts';
import { built } from '../support/crash.ts';
import { serverOf } from '../support/embedded-process.ts';
import { until } from '../support/wait.ts';

const CONFIG = fileURLToPath(new URL('../../config', import.meta.url));

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A place with nothing but the config that comes along, and a home with nothing in it. */
async function emptyPlace(): Promise<{ dir: string; home: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'trueup-newcomer-'));
  stops.push(async () => {
    // As root the server's files are not here, where its user could not reach them.
    const cluster = join(dir, '.trueup', 'postgres', 'cluster');
    if (existsSync(cluster)) await rm(dirname(await realpath(cluster)), { recursive: true, force: true });
    await rm(dir, { recursive: true, force: true });
  });
  const home = join(dir, 'home');
  await mkdir(home);
  await cp(CONFIG, join(dir, 'config'), { recursive: true });
  return { dir, home };
}

/** As `env -i PATH=... HOME=...`, but for a free port, since 7070 may be somebody's on this machine. */
function bareEnvironment(home: string): Record<string, string | undefined> {
  const none = Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined]));
  return { ...none, PATH: process.env['PATH'], HOME: home, TRUEUP_PORT: '0' };
}

function npmStart(dir: string, home: string): ChildNode {
  // What `npm start` runs once it has built.
  const child = spawnNode([built('cli/main.js'), 'up', '--config', 'config/trueup.yaml'], {
    cwd: dir,
    env: bareEnvironment(home),
  });
  stops.push(() => child.stop());
  return child;
}

async function urlOf(child: ChildNode): Promise<string> {
  return JSON.parse(await child.waitForLine(/"event":"up"/, { timeoutMs: 120_000 })).http;
}

describe('the first start, with an empty environment and no server anywhere', () => {
  it('stays up on an embedded store, ends runs as incomplete and says why, and leaves nothing running', async () => {
    const { dir, home } = await emptyPlace();
    const child = npmStart(dir, home);
    const url = await urlOf(child);
    const status = async (path: string) => (await fetch(url + path)).status;
    expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 200]);

    // What the schedule makes every 15 minutes, made now.
    const store = await startEmbeddedPostgres({ dir: join(dir, '.trueup', 'postgres') });
    const db = openDatabase(await store.ensureDatabase('trueup'), { applicationName: 'trueup-test' });
    try {
      const id = await createRun(db, {
        reconciliation: 'partner-orders',
        revision: null,
        trigger: 'schedule',
        mode: 'check',
        window: null,
        movesCoverage: true,
      });
      await until('the run has ended', async () => (await readRun(db, id))?.phase === 'done', {
        timeoutMs: 60_000,
      });
      const run = await readRun(db, id);
      expect(run).toMatchObject({ result: 'incomplete', verdict: 'undecided' });
      // The side and its host; what answers there, if anything, is not ours.
      expect(run?.reason).toMatch(/^partner-orders source postgres shop.*127\.0\.0\.1:5432: ./);
      expect(await db('coverage').select()).toEqual([]);
    } finally {
      await db.destroy();
      await store.stop();
    }
    await child.waitForLine(/"event":"run.incomplete"/);

    // It is none the worse for it.
    expect([await status('/healthz'), await status('/readyz')]).toEqual([200, 200]);
    expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
      /^trueup_runs_total\{reconciliation="partner-orders",result="incomplete"\} 1$/m,
    );

    const server = await serverOf(store.dir);
    expect(await server.runs()).toBe(true);
    child.kill('SIGINT');
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(await server.runs()).toBe(false);
    await expect(fetch(url)).rejects.toThrow();
  });

  it('starts again on what the first one stored', async () => {
    const { dir, home } = await emptyPlace();
    const stop = async (child: ChildNode) => {
      child.kill('SIGINT');
      expect(await child.exited).toEqual({ code: 0, signal: null });
    };
    const first = npmStart(dir, home);
    await urlOf(first);
    expect(first.lines.some(({ text }) => text.includes('"event":"store.migrated"'))).toBe(true);
    await stop(first);
    const second = npmStart(dir, home);
    await urlOf(second);
    expect(second.lines.some(({ text }) => text.includes('"event":"store.migrated"'))).toBe(false);
    await stop(second);
  });
});
