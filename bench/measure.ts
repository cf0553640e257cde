import { Socket } from 'node:net';
import pg from 'pg';
import { ruleSchema, sideSchema } from '../src/config/schema.ts';
import { parseInstant } from '../src/reconcile/instant.ts';
import { readWindow } from '../src/reconcile/read-window.ts';
import type { Window } from '../src/reconcile/record.ts';
import type { Side } from '../src/reconcile/side.ts';
import { createSide } from '../src/reconcile/sides/create.ts';

/** One case, measured in this process and nothing else: `node measure.js '<Job as JSON>'`. */
export interface Job {
  readonly url: string;
  readonly what: 'raw' | 'merge' | 'hash-scan' | 'copy' | 'join';
  readonly downstream: 'equal' | 'differing';
  /** Hides from the side that its key sorts by bytes, so that the server has to sort. */
  readonly sorted: boolean;
}

export interface Measured {
  readonly wallMs: number;
  readonly nodeCpuMs: number;
  readonly peakRssMb: number;
  readonly movedMb: number;
  readonly found: { readonly missing: number; readonly extra: number; readonly mismatched: number } | null;
}

type Found = Measured['found'];

const FIELDS = ['user_id', 'status', 'amount', 'currency', 'updated_at', 'memo'] as const;
const RULES = Object.fromEntries(FIELDS.map((field) => [field, ruleSchema.parse({})]));

const WINDOW: Window = { from: instant('2026-01-01T00:00:00Z'), to: instant('2036-01-01T00:00:00Z') };
const { signal } = new AbortController();

function instant(text: string) {
  const parsed = parseInstant(text);
  if (parsed === undefined) throw new Error(`${text} is no instant`);
  return parsed;
}

/** Every socket of the process, to count what they read. */
function countSockets(): () => number {
  const sockets = new Set<Socket>();
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]) {
    sockets.add(this);
    return Reflect.apply(connect, this, args);
  } as typeof connect;
  return () => [...sockets].reduce((sum, socket) => sum + socket.bytesRead, 0);
}

function open(job: Job, name: 'source' | 'downstream'): Side {
  const table = name === 'source' ? 'source' : job.downstream;
  const others = ['order_no', ...FIELDS]
    .join(', ')
    .replace('order_no', 'order_no collate "en-x-icu" as order_no');
  const from = job.sorted ? { query: `select ${others} from ${table}` } : { table };
  const config = { type: 'postgres', url: job.url, time: 'updated_at', fields: [...FIELDS], ...from };
  return createSide(sideSchema.parse({ ...config, statementTimeout: '10m' }), {
    name,
    keyNames: ['order_no'],
    rules: RULES,
    targets: {},
    readGate: { take: () => Promise.resolve() },
  });
}

async function measure(job: Job): Promise<Measured> {
  const bytesRead = countSockets();
  const { run, close } = await prepare(job);
  const [bytes, cpu, started] = [bytesRead(), process.cpuUsage(), performance.now()];
  const found = await run();
  const wallMs = performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  const movedMb = (bytesRead() - bytes) / 1e6;
  await close();
  return {
    wallMs,
    nodeCpuMs: (user + system) / 1000,
    peakRssMb: process.resourceUsage().maxRSS / 1024,
    movedMb,
    found,
  };
}

interface Prepared {
  readonly run: () => Promise<Found>;
  readonly close: () => Promise<void>;
}

/** Opens the connections, so that only the work is measured. */
async function prepare(job: Job): Promise<Prepared> {
  if (job.what === 'hash-scan' || job.what === 'join') return prepareStatement(job);
  const source = open(job, 'source');
  await warm(source);
  if (job.what === 'copy') return { run: () => drain(source), close: () => source.close() };
  const downstream = open(job, 'downstream');
  await warm(downstream);
  const plan = job.what;
  const input = { window: WINDOW, source, downstream, plan, rules: RULES, digestKey: 'bench', signal };
  return {
    async run() {
      const { counts } = await readWindow(input);
      const { missing, extra, mismatched } = counts;
      return { missing, extra, mismatched };
    },
    async close() {
      await Promise.all([source.close(), downstream.close()]);
    },
  };
}

/** One connection for the window, one for lookups beside it. */
async function warm(side: Side): Promise<void> {
  await Promise.all([side.clock(signal), side.clock(signal)]);
  await side.raw?.layout(signal);
}

async function prepareStatement(job: Job): Promise<Prepared> {
  const client = new pg.Client({ connectionString: job.url });
  await client.connect();
  const statement =
    job.what === 'hash-scan'
      ? 'select count(*), bit_xor(hash_record_extended(t, 0)) from source t'
      : `select count(*) filter (where b.order_no is null) as missing, count(*) filter (where a.order_no is null) as extra,
           count(*) filter (where a.order_no = b.order_no and a is distinct from b) as mismatched
         from source a full join ${job.downstream} b on a.order_no = b.order_no`;
  return {
    async run() {
      const { rows } = await client.query(statement);
      if (job.what === 'hash-scan') return null;
      const [row] = rows;
      return { missing: Number(row.missing), extra: Number(row.extra), mismatched: Number(row.mismatched) };
    },
    close: () => client.end(),
  };
}

/** One side's rows in key order, read and dropped. */
async function drain(side: Side): Promise<Found> {
  if (side.raw === undefined) throw new Error(`${side.label} has no raw rows`);
  const stream = await side.raw.open(WINDOW, 'binary', signal);
  while (stream.frames.state === 'open') {
    await stream.more();
    stream.frames.consumeTo(stream.frames.whole);
  }
  await stream.close();
  return null;
}

process.stdout.write(`${JSON.stringify(await measure(JSON.parse(process.argv[2] ?? '') as Job))}\n`);
