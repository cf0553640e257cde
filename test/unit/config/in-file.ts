import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ConfigError, type Problem } from '../../../src/config/config-error.ts';
import { type LoadedConfig, loadConfig } from '../../../src/config/load.ts';

/** Loads a config text from a file of its own, with other files beside it. */
export async function load(
  yaml: string,
  env: Record<string, string> = {},
  beside: Record<string, string> = {},
): Promise<LoadedConfig> {
  const directory = await mkdtemp(join(tmpdir(), 'trueup-config-'));
  try {
    for (const [name, text] of Object.entries(beside)) await writeFile(join(directory, name), text);
    const path = join(directory, 'trueup.yaml');
    await writeFile(path, yaml);
    return await loadConfig(path, env);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** The error of a config that must not load. */
export async function refusal(
  yaml: string,
  env: Record<string, string> = {},
  beside: Record<string, string> = {},
): Promise<ConfigError> {
  const error = await load(yaml, env, beside).then(
    () => new Error('the config was accepted'),
    (reason: unknown) => reason,
  );
  if (error instanceof ConfigError) return error;
  throw error;
}

export async function problemsOf(
  yaml: string,
  env: Record<string, string> = {},
): Promise<readonly Problem[]> {
  return (await refusal(yaml, env)).problems;
}

/** Two PostgreSQL sides that are fine; `more` is added to the reconciliation, `top` to the file. */
export function pair(more = '', top = ''): string {
  return `version: 1
${top}
reconciliations:
  orders:
    source: { type: postgres, url: 'postgres://reader@127.0.0.1/a', table: orders, time: updated_at, fields: [amount, status] }
    downstream: { type: postgres, url: 'postgres://reader@127.0.0.1/b', table: orders, time: updated_at, fields: [amount, status] }
    key: [order_no]
    compare: { amount: decimal, status: text }
${more.replace(/^(?=.)/gm, '    ')}
`;
}
