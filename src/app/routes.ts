import type { Sender } from '../compensate/action.ts';
import { createSender } from '../compensate/actions/create.ts';
import { maskedSender } from '../compensate/actions/masked-sender.ts';
import type { GateTiming } from '../compensate/gate/watermark.ts';
import { repairByName } from '../compensate/plan.ts';
import type { LoadedConfig } from '../config/load.ts';
import { createRedactor } from '../config/redact.ts';
import type { Repair, Target } from '../config/schema.ts';
import { LookBatch } from '../jobs/look-batch.ts';
import type { Pair } from '../jobs/pair.ts';
import type { RepairRoute } from '../jobs/run-compensation.ts';
import { Turns } from '../jobs/turns.ts';
import type { CompareContext } from '../reconcile/compare-records.ts';
import { lookBoth } from '../reconcile/look.ts';
import type { Compensation } from '../store/compensations.ts';

interface RouteDeps {
  readonly loaded: LoadedConfig;
  readonly pairs: ReadonlyMap<string, Pair>;
  readonly look: (pair: Pair) => CompareContext;
  readonly timing: GateTiming;
  readonly stopping: AbortSignal;
}

/** A look is taken about this long before its turn, so that it is still fresh then. */
const NEAR_SECONDS = 0.7;

/** Senders and gathered looks, one per repair and per reconciliation, made when first needed. */
export class Routes {
  readonly #deps: RouteDeps;
  readonly #senders = new Map<string, Sender>();
  readonly #looks = new Map<string, LookBatch>();
  readonly #turns = new Map<string, Turns>();

  constructor(deps: RouteDeps) {
    this.#deps = deps;
  }

  of(compensation: Compensation): RepairRoute | undefined {
    const { loaded, pairs } = this.#deps;
    const pair = pairs.get(compensation.reconciliation);
    const repair = pair && repairByName(pair.config, compensation.repair);
    const target = loaded.config.targets[compensation.target];
    if (!pair || !repair || !target || repair.target !== compensation.target) return undefined;
    return {
      pair,
      repair,
      target,
      gate: target.upstream ?? compensation.target,
      sender: this.#sender(`${pair.name} ${compensation.repair}`, repair),
      look: (key) => this.#look(pair).look(key),
      turns: this.#turnsOf(target.upstream ?? compensation.target, target),
    };
  }

  #sender(name: string, repair: Repair): Sender {
    const known = this.#senders.get(name);
    if (known) return known;
    const { config, directory, secrets } = this.#deps.loaded;
    const target = config.targets[repair.target];
    if (!target) throw new Error(`no target ${repair.target}`);
    const options = { targetName: repair.target, target, baseDirectory: directory };
    const made = maskedSender(createSender(repair.action, options), createRedactor(secrets));
    this.#senders.set(name, made);
    return made;
  }

  #look(pair: Pair): LookBatch {
    const known = this.#looks.get(pair.name);
    if (known) return known;
    const { look, stopping } = this.#deps;
    const made = new LookBatch((keys) => lookBoth(keys, pair.source, pair.downstream, look(pair), stopping));
    this.#looks.set(pair.name, made);
    return made;
  }

  #turnsOf(gate: string, target: Target): Turns {
    const known = this.#turns.get(gate);
    if (known) return known;
    const { concurrency, watermark } = target;
    const perSecond =
      watermark === 'unlimited' ? concurrency : (watermark * 1000) / this.#deps.timing.windowMs;
    const made = new Turns({ concurrency, nearness: Math.ceil(perSecond * NEAR_SECONDS) + 1 });
    this.#turns.set(gate, made);
    return made;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#senders.values()].map((sender) => sender.close()));
  }
}
