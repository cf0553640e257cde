import type { Repair, Target } from '../config/schema.ts';
import { EXIT, TrueupError } from '../error.ts';
import type { Db } from '../store/database.ts';
import { gateStatus } from '../store/gates.ts';
import type { Pair } from './pair.ts';

/** Refuses a watermark of a run that is above the ceiling of every target it may send to: it would promise too much. */
export async function assertRunWatermark(
  db: Db,
  targets: Readonly<Record<string, Target>>,
  pair: Pair,
  watermark: number,
): Promise<void> {
  const ceilings = new Map<string, number>();
  for (const { target: name } of repairsOf(pair)) {
    const target = targets[name];
    if (target === undefined) continue;
    const { ceiling } = await gateStatus(db, target.upstream ?? name, target);
    if (ceiling === null) return;
    ceilings.set(name, ceiling);
  }
  const highest = Math.max(...ceilings.values());
  if (ceilings.size === 0 || watermark <= highest) return;
  const names = [...ceilings].map(([name, ceiling]) => `${ceiling} for ${name}`).join(', ');
  throw new TrueupError(
    'TRU_WATERMARK_ABOVE_CEILING',
    `--watermark ${watermark} is above the ceiling that the configuration sets: ${names}`,
    { exit: EXIT.usage, hint: `give a number up to ${highest}, or leave it out` },
  );
}

function repairsOf({ config }: Pair): Repair[] {
  return (['missing', 'mismatched', 'extra'] as const).flatMap((kind) => {
    const repair = config.repair[kind];
    if (repair === 'report') return [];
    return Array.isArray(repair) ? repair : [repair];
  });
}
