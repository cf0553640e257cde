// The text of docs/reference/cli.md, from the help of the built command. Needs a build.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const COMMANDS = new URL('../dist/cli/commands/', import.meta.url);

/** Throws when the command that people start and the files in src/cli/commands know different commands. */
export async function cliReference() {
  const overview = execFileSync(process.execPath, [MAIN, '--help'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, NO_COLOR: '1' },
  });
  const listed = [...overview.matchAll(/^ {2}([a-z]+)(?: [[<].*)? {2,}\S/gm)].map(([, name]) => name);
  const commands = await registered();
  const names = commands.map((command) => command.name());
  const different = [
    ...listed.filter((name) => !names.includes(name)),
    ...names.filter((name) => !listed.includes(name)),
  ];
  if (different.filter((name) => name !== 'help').length > 0)
    throw new Error(`the command and src/cli/commands differ in: ${different.join(', ')}`);
  const ordered = listed.flatMap((name) => commands.filter((command) => command.name() === name));
  const parts = ordered.map((command) => [`## ${command.name()}`, '', fence(helpOf(command)), ''].join('\n'));
  return [INTRODUCTION, fence(overview), '', ...parts].join('\n');
}

const INTRODUCTION = `# Commands

<!-- Written by scripts/write-reference.mjs from the commands' own help. Do not edit. -->

In a checkout the command is \`node dist/cli/main.js\`, made by \`npm run build\`; where the package is installed it is
\`trueup\`. The answer of a command goes to stdout, everything else (progress, warnings, the log) to stderr as text or
JSON lines. \`--config\` and \`--format\` stand before or after the name of the command.

| environment | meaning |
| --- | --- |
| \`TRUEUP_CONFIG\` | config file, when \`--config\` is not given; else config/trueup.yaml, else trueup.yaml. Commands that only read or decide need none: \`DATABASE_URL\` is enough |
| \`DATABASE_URL\` | the store, when \`store.url\` is not set; without both the embedded PostgreSQL in .trueup/ |
| \`QUEUE_URL\` | the queue, when \`queue.url\` is not set; without both the store |
| \`TRUEUP_ACTOR\` | who decides, for the audit; left out: the system's user |

| exit code | meaning |
| --- | --- |
| 0 | done; for \`run\`: nothing is left to do |
| 1 | unexpected; for decisions on diffs: some could not be carried out |
| 2 | wrong usage or configuration |
| 3 | \`run --fail-on-diff\` found diffs |
| 4 | a person is needed: \`run\` saw a diff that was handed to a person (by it or by an earlier run), is on hold, or waited for a held target longer than \`--wait-for\`; \`doctor\` found something wrong |
| 5 | the store's schema is missing, too old or too new |
| 6 | \`run\` was incomplete or undecided, or was left before its repairs had ended, which never reads as clean |
| 75 | temporary: a server cannot be reached now, or refuses this user (the file is not at fault), or \`run\` waited for a target that is down longer than \`--wait-for\` |
| 130 | \`up\`, \`worker\` or \`run\` was stopped twice, and ended at once |

\`hold\`, \`release\`, \`watermark\` and \`replay\` go by the active configuration, whatever file lies here; a file that
differs is named on stderr. The other commands that take names go by the file.

\`run --format json\` prints one object: \`run\`, \`reconciliation\`, \`mode\`, \`window\`, \`verdict\`, \`complete\`,
\`result\`, \`reason\`, \`counts\`, \`guard\`, \`coveredTo\`, \`provenTo\`, \`diffs\` (\`id\`, \`key\`, \`kind\`, \`fields\`, \`state\`), \`plan\`, \`compensations\`,
\`needsPerson\`, \`waitingFor\`, \`watermark\`, \`timings\`. \`plan\` says how the window was read (\`name\`, \`why\`) and, in
mode plan, what would be sent (\`id\`, \`sends\`, \`byKind\`, \`byTarget\`, \`left\`, \`eta\`, \`expiresAt\`, and \`outcome\` once
it was executed). Several names give a list of such objects; \`ndjson\` gives one a line.

`;

async function registered() {
  const program = new Command('trueup');
  for (const file of readdirSync(COMMANDS)
    .filter((name) => name.endsWith('.js'))
    .sort()) {
    const exports = Object.entries(await import(new URL(file, COMMANDS).href));
    for (const [name, register] of exports) if (name.startsWith('register')) register(program);
  }
  return program.commands;
}

function helpOf(command) {
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

const fence = (text) => `\`\`\`text\n${text.trimEnd()}\n\`\`\``;
