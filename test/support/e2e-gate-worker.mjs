/**
 * A worker built as `trueup worker` builds it, with a shorter window for the gate and short leases. Plain JavaScript on
 * the built files, because it runs as a process of its own. First argument: the config file; second: the timing of the
 * gate as JSON. Says `up` when it takes work, and ends on SIGTERM.
 */
import process from 'node:process';
import { openApp, openStore } from '../../dist/app.js';
import { loadConfig } from '../../dist/config/load.js';
import { startWorker } from '../../dist/jobs/worker.js';
import { createLogger } from '../../dist/observe/logger.js';

const TIMES = {
  ring: 2_000,
  runLease: 2_000,
  sendMargin: 500,
  settleClaim: 1_500,
  alertLease: 1_500,
  sweepPause: 200,
};

const stopped = new Promise((resolve) => {
  process.once('SIGTERM', resolve);
});
const loaded = await loadConfig(process.argv[2], process.env);
const logger = createLogger({ level: loaded.config.log.level, redact: (text) => text });
const store = await openStore(loaded.config, {}, logger);
const app = await openApp(loaded, store, {}, logger, { times: TIMES, timing: JSON.parse(process.argv[3]) });
const worker = await startWorker(app.workerParts({ keepsSchedules: false }));
console.log('up');
await stopped;
app.draining.abort();
await worker.drain(5_000);
await app.close();
await store.close();
