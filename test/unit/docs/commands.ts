import { Command } from 'commander';
import { filesIn, ROOT } from './markdown.ts';

/** All commands of `trueup`, registered as src/cli/main.ts does, by the files in src/cli/commands. */
export async function registeredCommands(): Promise<readonly Command[]> {
  const program = new Command('trueup');
  for (const name of filesIn('src/cli/commands')) {
    const exported: Record<string, unknown> = await import(`${ROOT}${name}`);
    for (const [word, register] of Object.entries(exported)) {
      if (word.startsWith('register') && typeof register === 'function') register(program);
    }
  }
  return program.commands;
}

/** The help as `trueup COMMAND --help` prints it. */
export function helpOf(command: Command): string {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
    getOutHelpWidth: () => 80,
    getOutHasColors: () => false,
  });
  command.outputHelp();
  return text;
}
