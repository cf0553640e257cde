import { execFile } from 'node:child_process';
import pg from 'pg';

/** True when pg_comparator is installed, and the server has its functions. */
export async function hasComparator(url: string): Promise<boolean> {
  const installed = await new Promise<boolean>((resolve) => {
    execFile('pg_comparator', ['--version'], (error) => resolve(!isMissing(error)));
  });
  if (!installed) return false;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("select 1 from pg_available_extensions where name = 'pgcmp'");
    if (rows.length > 0) await client.query('create extension if not exists pgcmp');
    return rows.length > 0;
  } finally {
    await client.end();
  }
}

/** Wall time of pg_comparator with its defaults, in ms, and how many keys it reports. It connects by itself. */
export async function runComparator(
  url: string,
  downstream: string,
): Promise<{ wallMs: number; found: number }> {
  const { username, password, host, pathname } = new URL(url);
  const base = `pgsql://${username}:${password}@${host}${pathname}`;
  const columns = 'order_no:user_id,status,amount,currency,updated_at,memo';
  const args = [`${base}/source?${columns}`, `${base}/${downstream}?${columns}`];
  const started = performance.now();
  const output = await new Promise<string>((resolve, reject) => {
    execFile('pg_comparator', args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      // It ends with the number of differences as its code, up to 128 or so.
      if (isMissing(error) || /error|failed/i.test(stderr)) reject(new Error(`pg_comparator: ${stderr}`));
      else resolve(stdout);
    });
  });
  const wallMs = performance.now() - started;
  return { wallMs, found: output.split('\n').filter((line) => /^(INSERT|UPDATE|DELETE)/.test(line)).length };
}

function isMissing(error: Error | null): boolean {
  return error !== null && 'code' in error && error.code === 'ENOENT';
}
