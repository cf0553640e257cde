import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { start, trueup, trueupJson, up } from '../support/e2e-cli.ts';
import { orders } from '../support/e2e-orders.ts';
import { openShop, posts } from '../support/e2e-shop.ts';
import { until } from '../support/wait.ts';

/** `trueup run` with a plan, and what it does while it waits. */

const stops: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface Report {
  readonly run: string;
  readonly result: string;
  readonly counts: Record<string, number>;
  readonly compensations: Record<string, number>;
  readonly waitingFor: readonly string[];
  readonly plan: {
    readonly id: string;
    readonly sends: number;
    readonly byKind: Record<string, number>;
    readonly eta: { readonly at: string; readonly text: string };
    readonly expiresAt: string;
    readonly outcome: unknown;
  };
}

describe('a plan', () => {
  it('is made, refused without --yes, executed once at its own watermark, and done', async () => {
    const shop = await openShop(stops, { target: { watermark: 600 } });
    await shop.data.place(orders('lost', 3));
    const run = (...words: string[]) => ['run', ...words, '--config', shop.path];

    const made = await trueupJson<Report>(run('orders', '--last', '1h', '--mode', 'plan'));
    expect(made).toMatchObject({ counts: { missing: 3 }, compensations: { planned: 0 } });
    const { plan } = made;
    expect(plan).toMatchObject({
      id: expect.stringMatching(/^\d+$/),
      name: expect.stringMatching(/^(merge|lookup)$/),
      sends: 3,
      byKind: { missing: 3 },
      eta: { text: expect.stringMatching(/^3 sends at 600 a minute: done about \d\d:\d\d \(UTC\)$/) },
      expiresAt: expect.stringMatching(/Z$/),
    });
    expect(posts(shop.api)).toEqual([]);

    const unsure = await trueup(run('--plan', plan.id));
    expect(unsure).toMatchObject({ code: 2, stdout: '' });
    expect(unsure.stderr).toMatch(/nothing was done: add --yes to execute plan \d+: 3 sends/);
    const greedy = await trueup(run('--plan', plan.id, '--yes', '--watermark', '601'));
    expect(greedy).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/601 is above.*600 for bookings/),
    });
    expect(posts(shop.api)).toEqual([]);

    const done = await trueupJson<Report>(run('--plan', plan.id, '--yes', '--watermark', '60'));
    expect(done).toMatchObject({
      run: made.run,
      watermark: 60,
      compensations: { planned: 3, verified: 3, open: 0 },
      plan: {
        outcome: { planned: 3, skipped: { changed: 0, decided: 0, underWay: 0, notPlanned: 0 } },
      },
    });
    const at = posts(shop.api).map((request) => request.at);
    const gaps = at.slice(1).map((moment, index) => moment - (at[index] ?? 0));
    // Slots of the run are 1008 ms apart, and a call starts at most 250 ms after its slot.
    expect(Math.min(...gaps)).toBeGreaterThan(700);

    const again = await trueup(run('--plan', plan.id, '--yes'));
    expect(again).toMatchObject({ code: 2, stderr: expect.stringMatching(/executed already/) });
    expect(posts(shop.api)).toHaveLength(3);
  });

  it('tells a person what it holds and how to execute it', async () => {
    const shop = await openShop(stops);
    await shop.data.place(orders('lost', 2));
    const said = await trueup(['run', 'orders', '--last', '1h', '--mode', 'plan', '--config', shop.path]);
    expect(said.code).toBe(0);
    expect(said.stdout).toMatch(/plan \d+: missing 2\n/);
    expect(said.stdout).toMatch(/2 sends at 100 a minute: done about/);
    expect(said.stdout).toMatch(/execute it until \S+ with: trueup run --plan \d+$/m);
    expect(said.stdout).toContain('missing lost-00001');
  });
});

describe('waiting', () => {
  const compensate = ['run', 'orders', '--last', '1h', '--mode', 'compensate'];

  it('for a held target says so, and ends with 4 after --wait-for, leaving the rest in the ledger', async () => {
    const shop = await openShop(stops);
    await shop.data.place(orders('lost', 2));
    const config = ['--config', shop.path];
    await trueup(['hold', 'bookings', '--reason', 'they asked us to', ...config]);
    const said = await trueup([...compensate, '--wait-for', '2s', '--format', 'json', ...config]);
    expect(said.code).toBe(4);
    expect(said.stderr).toMatch(/waiting \(at most 2s without a move\): 2 sends to bookings: it is on hold/);
    expect(said.stderr).toContain('they asked us to');
    const report: Report = JSON.parse(said.stdout);
    expect(report.compensations).toMatchObject({ planned: 2, open: 2, sent: 0 });
    expect(report.waitingFor).toEqual([expect.stringMatching(/trueup release bookings/)]);
    expect(posts(shop.api)).toEqual([]);
    // What was left is taken up by whoever comes next.
    await trueup(['release', 'bookings', '--reason', 'they are well', ...config]);
    await trueupJson<Report>([...compensate, ...config]);
    expect((await shop.data.effects()).size).toBe(2);
  });

  it('for a target that is down ends with 75', async () => {
    const shop = await openShop(stops, {
      bookings: { dedupes: true, react: () => ({ do: 'answer', status: 503, body: {} }) },
      target: { breaker: { consecutive: 2, open: '10m' } },
    });
    await shop.data.place(orders('lost', 3));
    const said = await trueup([...compensate, '--wait-for', '4s', '--config', shop.path]);
    expect(said.stderr).toMatch(/breaker is open/);
    expect(said.stderr).toMatch(/left waiting: 3 sends to bookings/);
    expect(said.code).toBe(75);
  });

  it('with --wait leaves the work to the server, and Ctrl-C only ends the watching', async () => {
    const shop = await openShop(stops, { target: { watermark: 60 } });
    await shop.data.place(orders('lost', 6));
    const server = await up(shop.path);
    stops.push(() => server.child.stop());
    const watching = start([...compensate, '--wait', '--format', 'json', '--config', shop.path]);
    stops.push(() => watching.stop());
    await until('two were sent', () => posts(shop.api).length >= 2, { timeoutMs: 60_000 });
    watching.kill('SIGINT');
    expect(await watching.exited).toEqual({ code: 6, signal: null });
    const said = watching.lines.filter(({ from }) => from === 'stderr').map(({ text }) => text);
    expect(said.join('\n')).toMatch(/a server is running[\s\S]*detached: the server goes on/);
    expect(posts(shop.api).length).toBeLessThan(6);
    await until('the server has sent all', async () => (await shop.data.effects()).size === 6, {
      timeoutMs: 60_000,
    });
    const db = openDatabase(shop.storeUrl, { applicationName: 'trueup-test' });
    try {
      // Every call was the server's.
      expect(await db('attempt').distinct('worker')).toHaveLength(1);
    } finally {
      await db.destroy();
    }
  });

  it('with --wait and no server does the work itself', async () => {
    const shop = await openShop(stops);
    await shop.data.place(orders('lost', 1));
    const report = await trueupJson<Report>([...compensate, '--wait', '--config', shop.path]);
    expect(report.compensations).toMatchObject({ planned: 1, verified: 1, open: 0 });
  });
});
