// Writes docs/reference/config.md, docs/reference/cli.md and the state table in docs/architecture.md from the code.
// With --check it writes nothing and exits 1 when a file differs. Needs a build: npm run build
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { stateTable } from '../dist/compensate/state-table.js';
import { cliReference } from './reference-cli.mjs';
import { configReference } from './reference-config.mjs';

const START = '<!-- state table: written by scripts/write-reference.mjs -->';
const END = '<!-- end of the state table -->';

const files = {
  'docs/reference/config.md': () => configReference(),
  'docs/reference/cli.md': () => cliReference(),
  'docs/architecture.md': (text) => withStateTable(text),
};

for (const [name, write] of Object.entries(files)) {
  const path = fileURLToPath(new URL(`../${name}`, import.meta.url));
  const before = readText(path);
  const after = `${(await write(before)).trimEnd()}\n`;
  if (after === before) continue;
  if (!process.argv.includes('--check')) {
    writeFileSync(path, after);
    continue;
  }
  console.error(`${name} is out of date; run: npm run build && node scripts/write-reference.mjs`);
  process.exitCode = 1;
}

/** The tables of docs/state-table.md without its heading, which the page around them has. */
function withStateTable(text) {
  const [before, rest] = text.split(START);
  const [, after] = (rest ?? '').split(END);
  if (after === undefined) throw new Error('docs/architecture.md has lost the marks of the state table');
  const [, , ...lines] = stateTable().split('\n');
  return [before, START, '\n\n', lines.join('\n'), '\n', END, after].join('');
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return '';
    throw error;
  }
}
