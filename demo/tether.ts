import { spawn } from 'node:child_process';

/**
 * `tether.js COMMAND ARGS...` runs a command that knows nothing of the demo, and ends it when the demo ends, even
 * after `kill -9` on the demo: the channel to the parent closes then. The command gets time to end in order.
 */
const PATIENCE_MS = 15_000;

const [command, ...args] = process.argv.slice(2);
if (command === undefined) throw new Error('usage: tether.js COMMAND ARGS...');
const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });

function end(): void {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS).unref();
}

process.on('disconnect', end);
process.on('SIGTERM', end);
child.on('error', (error) => {
  console.error(error);
  process.exit(1);
});
child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGTERM' ? 0 : 1)));
if (!process.connected) end();
