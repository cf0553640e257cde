import { describe, expect, inject, type TestContext, test, vi } from 'vitest';
import { addMillis } from '../../src/reconcile/instant.ts';
import type { Window } from '../../src/reconcile/record.ts';
import type { ChildNode } from '../support/child-process.ts';
import { createScenario, type Scenario } from '../support/scenario.ts';
import type { ScenarioAddresses } from '../support/scenario-config.ts';
import { SHORT } from '../support/scenario-orders.ts';
import { sparePort } from '../support/spare-port.ts';
import { startProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';

/** Ten times what a test takes on two idle cores. */
vi.setConfig({ testTimeout: 240_000 });

const HOUR = 3_600_000;
/** Twenty pages. */
const MANY = 400;
/** Each page takes this much longer, so that there is a middle of the scan. */
const SLOW = { delayMs: 40 };
const PASSWORD = 'r3ad-0nly';

async function startScenario(
  { onTestFinished }: TestContext,
  addresses: (real: ScenarioAddresses) => ScenarioAddresses,
): Promise<Scenario> {
  const scenario = await createScenario({ backend: 'postgres', size: SHORT, addresses });
  onTestFinished(() => scenario.close());
  return scenario;
}

/** A source behind a proxy, with so many orders in one hour that reading them takes a while. */
async function startCut(
  context: TestContext,
  hour: number,
): Promise<{ scenario: Scenario; proxy: TcpProxy }> {
  const { hostname, port } = new URL(inject('postgresUrl'));
  const proxy = await startProxy({ host: hostname, port: Number(port) });
  context.onTestFinished(() => proxy.close());
  const scenario = await startScenario(context, (real) => ({ ...real, source: proxy.url(real.source) }));
  // Equal on both sides: so many differences would be held by the guard.
  for (const table of ['shop.payments', 'gateway.payment']) {
    await scenario.systems.query(
      `insert into ${table} select 'MANY-' || n, 'PAID', 10, $1::timestamptz + n * interval '1 second' from generate_series(1, $2::int) n`,
      [hourOf(scenario, hour).from, MANY],
    );
  }
  await proxy.mode(SLOW);
  return { scenario, proxy };
}

function hourOf({ window }: Scenario, hour: number): Window {
  return { from: addMillis(window.from, hour * HOUR), to: addMillis(window.from, (hour + 1) * HOUR) };
}

function check(scenario: Scenario, name: string, { from, to }: Window): ChildNode {
  const range = ['--from', from, '--to', to];
  return scenario.startCommand('run', name, ...range, '--mode', 'check', '--format', 'json');
}

/** What a command printed and how it ended. */
async function ended(command: ChildNode) {
  const { code } = await command.exited;
  const text = (from: 'stdout' | 'stderr') =>
    command.lines.flatMap((line) => (line.from === from ? [line.text] : [])).join('\n');
  return { code, stdout: text('stdout'), stderr: text('stderr') };
}

async function stored({ store }: Scenario, name: string) {
  const coverage = await store('coverage').where({ reconciliation: name }).first('covered_to');
  const diffs = await store('diff').where({ reconciliation: name }).pluck('business_key');
  const suspects = await store('suspect').where({ reconciliation: name }).distinct('state').pluck('state');
  return { coverage: coverage?.covered_to ?? null, diffs, suspects };
}

function pagesRead({ gateway }: Scenario, pages: number): Promise<unknown> {
  const before = gateway.reads();
  return until(`${pages} pages were read`, () => gateway.reads() >= before + pages, { timeoutMs: 60_000 });
}

describe('a source that dies in mid-scan', () => {
  test('and stays away makes the run incomplete: the coverage stays, no diff, exit 6', async (context) => {
    const { scenario, proxy } = await startCut(context, 0);
    const run = check(scenario, 'payments', hourOf(scenario, 0));
    await pagesRead(scenario, 3);
    await proxy.mode('reset');
    const { code, stdout } = await ended(run);
    expect(code).toBe(6);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({
      reconciliation: 'payments',
      complete: false,
      result: 'incomplete',
      verdict: 'undecided',
      diffs: [],
    });
    expect(report.reason).toContain('payments source');
    expect(report.reason).toContain(`127.0.0.1:${proxy.port}`);
    expect(await stored(scenario, 'payments')).toEqual({
      coverage: scenario.window.from,
      diffs: [],
      suspects: [],
    });
  });

  test('leaves the coverage at the end of the last chunk that was read whole', async (context) => {
    const { scenario, proxy } = await startCut(context, 1);
    const run = check(scenario, 'payments', scenario.window);
    const { to } = hourOf(scenario, 0);
    await until(
      'the first chunk is stored',
      async () => (await stored(scenario, 'payments')).coverage === to,
      { timeoutMs: 60_000 },
    );
    await pagesRead(scenario, 3);
    await proxy.mode('reset');
    const { code, stdout } = await ended(run);
    expect(code).toBe(6);
    expect(JSON.parse(stdout)).toMatchObject({ complete: false, verdict: 'undecided', diffs: [] });
    // What the first chunk showed once was never looked at again, and stays open as that.
    expect(await stored(scenario, 'payments')).toEqual({ coverage: to, diffs: [], suspects: ['undecided'] });
  });

  test('and comes back is read again, and the run is as if nothing had happened', async (context) => {
    const { scenario, proxy } = await startCut(context, 0);
    const run = check(scenario, 'payments', scenario.window);
    await pagesRead(scenario, 3);
    await proxy.mode('reset');
    await proxy.mode('pass');
    const { code, stdout } = await ended(run);
    expect(code).toBe(0);
    const orders = scenario.orders.payments;
    expect(JSON.parse(stdout)).toMatchObject({
      complete: true,
      verdict: 'differ',
      counts: {
        source: orders.length + MANY,
        missing: orders.filter(({ role }) => role === 'missing').length,
        mismatched: orders.filter(({ role }) => role === 'mismatched').length,
        undecided: 0,
      },
    });
    expect((await stored(scenario, 'payments')).coverage).toBe(scenario.window.to);
  });
});

describe('a database that cannot be reached', () => {
  /** An address where nobody listens, with a password that must not be shown. */
  async function nowhere(): Promise<{ host: string; url: string }> {
    const host = `127.0.0.1:${await sparePort()}`;
    return { host, url: `postgres://reader:${PASSWORD}@${host}/shop` };
  }

  test('is named with its side and host by check, which ends with 75', async (context) => {
    const { host, url } = await nowhere();
    const scenario = await startScenario(context, (real) => ({ ...real, source: url }));
    const { code, stdout, stderr } = await ended(scenario.startCommand('check', 'parcels'));
    expect(code).toBe(75);
    expect(stdout).toContain('source');
    expect(stdout).toContain(host);
    expect(stdout + stderr).not.toContain(PASSWORD);
  });

  test('before a run exists ends run with 75: nothing was read, nothing is concluded', async (context) => {
    const { host, url } = await nowhere();
    const scenario = await startScenario(context, (real) => ({ ...real, source: url }));
    const { code, stdout, stderr } = await ended(check(scenario, 'parcels', scenario.window));
    expect(stderr).toContain('parcels source');
    expect(stderr).toContain(host);
    expect(stdout + stderr).not.toContain(PASSWORD);
    expect(code).toBe(75);
    expect(stdout).toBe('');
  });

  test('on the other side makes the run incomplete, exit 6', async (context) => {
    const { host, url } = await nowhere();
    const scenario = await startScenario(context, (real) => ({ ...real, downstream: url }));
    const { code, stdout, stderr } = await ended(check(scenario, 'parcels', scenario.window));
    expect(code).toBe(6);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ complete: false, verdict: 'undecided', diffs: [] });
    expect(report.reason).toContain('parcels downstream');
    expect(report.reason).toContain(host);
    expect(stdout + stderr).not.toContain(PASSWORD);
    expect(await stored(scenario, 'parcels')).toEqual({
      coverage: scenario.window.from,
      diffs: [],
      suspects: [],
    });
  });

  test('as the store ends up with 75 and says which address to check', async (context) => {
    const { host, url } = await nowhere();
    const scenario = await startScenario(context, (real) => ({ ...real, store: url }));
    const { code, stdout, stderr } = await ended(scenario.startCommand('up'));
    expect(code).toBe(75);
    expect(stderr).toContain('store');
    expect(stderr).toContain(host);
    expect(stdout + stderr).not.toContain(PASSWORD);
  });
});
