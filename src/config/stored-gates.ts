import { z } from 'zod';
import { EXIT, TrueupError } from '../error.ts';
import { interpolate } from './interpolate.ts';
import type { Target } from './schema.ts';

export interface StoredGates {
  readonly targets: Readonly<Record<string, Pick<Target, 'upstream' | 'watermark'>>>;
}

const documentSchema = z.looseObject({
  targets: z.record(z.string(), z.looseObject({ upstream: z.string().optional() })).default({}),
});

/**
 * The targets of a stored configuration and the gates they share: all that decisions about targets need, so that a
 * person needs none of the environment that the rest of the configuration asks for. The ceilings are not read here:
 * those of the active configuration stand in the store, at the gates.
 */
export function storedGates(
  document: unknown,
  env: Readonly<Record<string, string | undefined>>,
): StoredGates {
  const { targets } = documentSchema.parse(document);
  return {
    targets: Object.fromEntries(
      Object.entries(targets).map(([name, { upstream }]) => [
        name,
        {
          watermark: 'unlimited',
          ...(upstream === undefined ? {} : { upstream: resolved(name, upstream, env) }),
        },
      ]),
    ),
  };
}

function resolved(name: string, upstream: string, env: Readonly<Record<string, string | undefined>>): string {
  const outside = { env: (variable: string) => env[variable], file: () => ({ unreadable: 'not read here' }) };
  const { document, problems } = interpolate(upstream, outside);
  const [problem] = problems;
  if (problem === undefined && typeof document === 'string') return document;
  throw new TrueupError(
    'TRU_NO_GATE',
    `the gate of ${name} cannot be told: ${upstream} ${problem?.message ?? ''}`,
    {
      exit: EXIT.usage,
      hint: problem?.hint ?? 'set what it stands for in the environment',
    },
  );
}
