import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import type { Job, Measured } from './measure.ts';
import { hasComparator, runComparator } from './peers.ts';
import { createBenchDatabase, dropBenchDatabase, expectedFor, fillTables, type KeyKind } from './tables.ts';

const HELP = `npm run bench:diff -- [options]

Builds two tables, compares them in several ways, and prints medians.

  --pg URL     a PostgreSQL server to use; left out: an embedded one. The user must be able to create databases.
  --rows N     records per table; may be given several times. Left out: 100000 and 1000000
  --huge       also 10000000
  --reps N     runs of each case, interleaved; the median counts (5)
  --only RE    only cases whose name fits this regular expression
  --json       one JSON object as the last line of stdout
`;

interface Case {
  readonly name: string;
  readonly plan: string;
  readonly keys: KeyKind;
  readonly rows: number;
  readonly job: Omit<Job, 'url'> | 'pg_comparator';
  readonly equal: boolean;
}

interface Result {
  readonly name: string;
  readonly plan: string;
  readonly engines: string;
  readonly rows: number;
  readonly equal: boolean;
  readonly wallMs: number;
  readonly nodeCpuMs: number | null;
  readonly peakRssMb: number | null;
  readonly movedMb: number | null;
  /** Load of the machine while it ran: figures of a busy one are for their order only. */
  readonly load: number;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      pg: { type: 'string' },
      rows: { type: 'string', multiple: true },
      huge: { type: 'boolean', default: false },
      reps: { type: 'string', default: '5' },
      only: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const sizes = (values.rows ?? ['100000', '1000000']).map(Number);
  if (values.huge) sizes.push(10_000_000);
  const reps = Number(values.reps);
  const only = new RegExp(values.only);
  if (![...sizes, reps].every((number) => Number.isInteger(number) && number > 0)) throw new Error(HELP);
  const say = (text: string) => void (values.json ? process.stderr : process.stdout).write(`${text}\n`);
  const { server, stop } = await startServer(values.pg);
  try {
    const url = await createBenchDatabase(server);
    const results: Result[] = [];
    for (const rows of sizes) {
      for (const keys of ['ordered', 'uuid'] as const) {
        const cases = casesOf(keys, rows, await hasComparator(url)).filter((each) => only.test(each.name));
        if (cases.length === 0) continue;
        say(`\nfilling ${rows} records with ${keys} keys`);
        await fillTables(url, keys, rows);
        const measured = await runAll(cases, url, reps);
        results.push(...measured);
        say(table(measured));
      }
    }
    if (values.json) {
      process.stdout.write(
        `${JSON.stringify({ rows: Math.max(...sizes), cases: results, ratios: ratiosOf(results) })}\n`,
      );
    } else say(`\n${JSON.stringify(ratiosOf(results), null, 2)}`);
  } finally {
    await dropBenchDatabase(server);
    await stop();
  }
}

async function startServer(
  given: string | undefined,
): Promise<{ server: string; stop: () => Promise<void> }> {
  if (given !== undefined) return { server: given, stop: () => Promise.resolve() };
  const dir = await mkdtemp(join(tmpdir(), 'trueup-bench-'));
  const postgres = await startEmbeddedPostgres({ dir: join(dir, 'postgres'), durable: false });
  return {
    server: postgres.url,
    async stop() {
      await postgres.stop();
      await rm(postgres.dir, { recursive: true, force: true });
      await rm(dir, { recursive: true, force: true });
    },
  };
}

function casesOf(keys: KeyKind, rows: number, comparator: boolean): readonly Case[] {
  const compare = (what: Job['what'], plan: string, equal: boolean, sorted = false): Case => ({
    name: `${plan} ${keys} ${sorted ? 'sorted ' : ''}${equal ? 'equal' : 'planted'}`,
    plan,
    keys,
    rows,
    job: { what, downstream: equal ? 'equal' : 'differing', sorted },
    equal,
  });
  const cases = [
    compare('hash-scan', 'limit: record hash of one side', true),
    compare('copy', 'limit: ordered copy of one side', true),
    compare('join', 'limit: join in the database', true),
    compare('join', 'limit: join in the database', false),
    compare('raw', 'raw', true),
    compare('raw', 'raw', false),
    compare('merge', 'merge', true),
    compare('merge', 'merge', false),
  ];
  if (keys === 'ordered') {
    cases.push(
      compare('copy', 'limit: ordered copy of one side', true, true),
      compare('raw', 'raw', true, true),
      compare('raw', 'raw', false, true),
    );
  }
  if (comparator) {
    for (const equal of [true, false]) {
      cases.push({ ...compare('raw', 'pg_comparator', equal), job: 'pg_comparator' });
    }
  }
  return cases;
}

/** Every case once, then every case again: what else the machine does then meets all of them. */
async function runAll(cases: readonly Case[], url: string, reps: number): Promise<readonly Result[]> {
  const runs = new Map<Case, (Measured & { load: number })[]>(cases.map((each) => [each, []]));
  for (let rep = 0; rep < reps; rep += 1) {
    for (const each of cases) {
      const measured = await run(each, url);
      runs.get(each)?.push({ ...measured, load: loadavg()[0] ?? 0 });
    }
  }
  return cases.map((each) => {
    const all = runs.get(each) ?? [];
    const middle = (of: (one: Measured & { load: number }) => number) => median(all.map(of));
    const peer = each.job === 'pg_comparator';
    return {
      name: each.name,
      plan: each.plan,
      engines: 'postgres-postgres',
      rows: each.rows,
      equal: each.equal,
      wallMs: middle((one) => one.wallMs),
      nodeCpuMs: peer ? null : middle((one) => one.nodeCpuMs),
      peakRssMb: peer ? null : middle((one) => one.peakRssMb),
      movedMb: peer ? null : middle((one) => one.movedMb),
      load: middle((one) => one.load),
    };
  });
}

async function run(each: Case, url: string): Promise<Measured> {
  const none = { missing: 0, extra: 0, mismatched: 0 };
  const expected = each.equal ? none : expectedFor(each.rows);
  if (each.job === 'pg_comparator') {
    const { wallMs, found } = await runComparator(url, each.equal ? 'equal' : 'differing');
    const keys = expected.missing + expected.extra + expected.mismatched;
    if (found !== keys) throw new Error(`${each.name}: ${found} keys reported, ${keys} planted`);
    return { wallMs, nodeCpuMs: 0, peakRssMb: 0, movedMb: 0, found: null };
  }
  const measured = await inProcess({ ...each.job, url });
  // A figure for a wrong answer is worth nothing.
  if (measured.found !== null && JSON.stringify(measured.found) !== JSON.stringify(expected)) {
    throw new Error(
      `${each.name}: ${JSON.stringify(measured.found)} found, ${JSON.stringify(expected)} planted`,
    );
  }
  return measured;
}

function inProcess(job: Job): Promise<Measured> {
  const file = fileURLToPath(new URL('measure.js', import.meta.url));
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [file, JSON.stringify(job)], (error, stdout, stderr) => {
      if (error === null) resolve(JSON.parse(stdout) as Measured);
      else reject(new Error(stderr));
    });
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(half)] ?? 0) + (sorted[Math.ceil(half)] ?? 0)) / 2;
}

function table(results: readonly Result[]): string {
  const cell = (value: number | null, width: number, digits = 0) =>
    (value === null ? '' : value.toFixed(digits)).padStart(width);
  const lines = results.map(
    (each) =>
      each.name.padEnd(56) +
      cell(each.wallMs, 9) +
      cell(each.nodeCpuMs, 10) +
      cell(each.peakRssMb, 9) +
      cell(each.movedMb, 10, 1) +
      cell(each.load, 7, 1),
  );
  return [`${'case'.padEnd(56)}  wall ms  node CPU   RSS MB  MB moved   load`, ...lines].join('\n');
}

/** At the largest size, keys in order. Null where a part was not measured. */
function ratiosOf(results: readonly Result[]) {
  const rows = Math.max(...results.map((each) => each.rows));
  const wall = (name: string) => results.find((each) => each.rows === rows && each.name === name)?.wallMs;
  const ratio = (a: string, b: string): number | null => {
    const [x, y] = [wall(a), wall(b)];
    return x === undefined || y === undefined ? null : Math.round((x / y) * 1000) / 1000;
  };
  const [raw, rawPlanted] = ['raw ordered equal', 'raw ordered planted'];
  const hash = 'limit: record hash of one side ordered equal';
  return {
    rawVsHashScan: ratio(raw, hash),
    rawPlantedVsHashScan: ratio(rawPlanted, hash),
    rawVsCopy: ratio(raw, 'limit: ordered copy of one side ordered equal'),
    rawVsJoin: ratio(raw, 'limit: join in the database ordered equal'),
    rawPlantedVsJoin: ratio(rawPlanted, 'limit: join in the database ordered planted'),
    rawSortedVsSortedCopy: ratio(
      'raw ordered sorted equal',
      'limit: ordered copy of one side ordered sorted equal',
    ),
    pgComparatorVsRaw: ratio('pg_comparator ordered equal', raw),
    pgComparatorPlantedVsRaw: ratio('pg_comparator ordered planted', rawPlanted),
    cursorVsRaw: ratio('merge ordered equal', raw),
    mariadbPtTableSyncVsRaw: null,
    crossVsSlowerStream: null,
  };
}

await main();
