import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';

/** Starts the demo that is shipped beside the product; it runs the product as any user would. */
export function registerDemo(program: Command): void {
  program
    .command('demo')
    .description('shows the whole flow on two systems that an outage has driven apart')
    .allowUnknownOption()
    .allowExcessArguments()
    .addHelpText('after', '\nExample:\n  trueup demo --seed 7 --json')
    .action(async (_options, command: Command) => {
      const script = fileURLToPath(new URL('../../demo/main.js', import.meta.url));
      const child = spawn(process.execPath, [script, ...command.args], { stdio: 'inherit' });
      const forward = (signal: NodeJS.Signals) => child.kill(signal);
      process.on('SIGINT', forward).on('SIGTERM', forward);
      const [code] = await once(child, 'exit');
      process.exitCode = typeof code === 'number' ? code : 1;
    });
}
