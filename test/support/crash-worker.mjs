/**
 * A worker built as `trueup up` builds it, but with short leases, that stops dead at a crash point. Plain JavaScript on
 * the built files, because it runs as a process of its own. First argument: the config file. `CRASH_AT=name` or
 * `CRASH_AT=name:3` arms the third passing of that point: the process writes `stopped at name` and nothing in it moves
 * any more, until the test kills it.
 */
import { writeSync } from 'node:fs';
import process from 'node:process';
import { applyConfig, openApp, openStore, prepareStore } from '../../dist/app.js';
import { loadConfig } from '../../dist/config/load.js';
import { startWorker } from '../../dist/jobs/worker.js';
import { createLogger } from '../../dist/observe/logger.js';

const DRAIN_MS = 10_000;
/** A test that was killed itself kills nobody any more. */
const LONGEST_STOP_MS = 300_000;
const TIMES = {
  // Long enough for a row that waits for its turn on a busy machine.
  ring: 4_000,
  runLease: 2_000,
  sendMargin: 500,
  settleClaim: 1_500,
  alertLease: 1_500,
  sweepPause: 200,
};

const [armed, count = '1'] = (process.env['CRASH_AT'] ?? '').split(':');
let passings = Number(count);

async function checkpoint(name) {
  if (name !== armed) return;
  passings -= 1;
  if (passings > 0) return;
  say(`stopped at ${name}`);
  // Blocks the whole process: no timer, no answer and no other job goes on behind this point.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LONGEST_STOP_MS);
  process.kill(process.pid, 'SIGKILL');
}

/** Written before the process can stop. */
function say(line) {
  writeSync(1, `${line}\n`);
}

const stopped = new Promise((resolve) => {
  process.once('SIGINT', resolve).once('SIGTERM', resolve);
});
const loaded = await loadConfig(process.argv[2], process.env);
const logger = createLogger({ level: loaded.config.log.level, redact: (text) => text });
const store = await openStore(loaded.config, {}, logger);
await prepareStore(store, logger);
await applyConfig(store.db, loaded, { name: 'test', origin: 'crash-worker' });
const app = await openApp(loaded, store, {}, logger, { checkpoint, times: TIMES });
const worker = await startWorker(app.workerParts({ keepsSchedules: true }));
say('up');
await stopped;
app.draining.abort();
await worker.drain(DRAIN_MS);
await app.close();
await store.close();
say('drained');
