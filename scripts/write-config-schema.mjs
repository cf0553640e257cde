// Writes config/trueup.schema.json from src/config/schema.ts. With --check it writes nothing and exits 1 when the file
// differs. Needs a build: `npm run schema`.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configJsonSchema } from '../dist/config/json-schema.js';

const file = fileURLToPath(new URL('../config/trueup.schema.json', import.meta.url));
const text = `${JSON.stringify(configJsonSchema(), null, 2)}\n`;

if (!process.argv.includes('--check')) {
  writeFileSync(file, text);
} else if (readText(file) !== text) {
  console.error('config/trueup.schema.json is out of date; run: npm run schema');
  process.exitCode = 1;
}

function readText(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}
