import type { GateTiming } from '../compensate/gate/watermark.ts';
import type { LoadedConfig } from '../config/load.ts';
import { createRedactor } from '../config/redact.ts';
import type { Config, SideConfig } from '../config/schema.ts';
import type { Pair } from '../jobs/pair.ts';
import { takeTurn } from '../jobs/read-gate.ts';
import type { ReadGate, Side } from '../reconcile/side.ts';
import { createSide } from '../reconcile/sides/create.ts';
import { maskedSide } from '../reconcile/sides/masked-side.ts';
import type { Db } from '../store/database.ts';
import { grantRead } from '../store/grants.ts';

/** Opens the sides of every reconciliation; nothing is connected before the first read. */
export function openPairs(
  { config, secrets }: LoadedConfig,
  readGate: ReadGate,
  openSide: typeof createSide = createSide,
): Map<string, Pair> {
  const redact = createRedactor(secrets);
  return new Map(
    Object.entries(config.reconciliations).map(([name, reconciliation]) => {
      const open = (side: SideConfig, sideName: string): Side => {
        const opened = openSide(side, {
          name: `${name} ${sideName}`,
          keyNames: reconciliation.key,
          rules: reconciliation.compare,
          targets: config.targets,
          readGate,
        });
        return maskedSide(opened, redact);
      };
      const source = open(reconciliation.source, 'source');
      const downstream = open(reconciliation.downstream, 'downstream');
      return [name, { name, config: reconciliation, zone: config.timezone, source, downstream }];
    }),
  );
}

/** Reads of a target take slots of its read gate; `onWaited` is told how long each waited for its own. */
export function gatedReads(
  config: Config,
  db: Db,
  timing: GateTiming,
  onWaited: (target: string, seconds: number) => void,
): ReadGate {
  return {
    take: async (name, signal) => {
      const target = config.targets[name];
      if (!target) throw new Error(`no target ${name}`);
      const gate = target.upstream ?? name;
      const since = performance.now();
      await takeTurn(() => grantRead(db, { gate, reads: target.reads, timing }), signal);
      onWaited(name, (performance.now() - since) / 1000);
    },
  };
}
