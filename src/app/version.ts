import { readFileSync } from 'node:fs';

/** The release, as package.json says it; the path is the same from `src/app` and from `dist/app`. */
export const VERSION: string = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).version;
