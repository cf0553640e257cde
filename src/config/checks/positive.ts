import type { CrossProblem } from '../cross-problem.ts';
import type { Path } from '../path.ts';
import type { Config } from '../schema.ts';

/** Durations where nothing at all would mean "never" or "at once, for ever". */
export function checkPositive(config: Config): readonly CrossProblem[] {
  return [...durations(config)]
    .filter(([, ms]) => ms === 0)
    .map(([path]) => ({
      path,
      predicate: 'is no time at all',
      hint: 'write a duration above zero, such as 1s',
    }));
}

function* durations(config: Config): Generator<readonly [Path, number | undefined]> {
  yield [['alerts', 'repeat'], config.alerts.repeat];
  yield [['retention', 'runs'], config.retention.runs];
  yield [['retention', 'diffs'], config.retention.diffs];
  for (const [name, target] of Object.entries(config.targets)) {
    const path = ['targets', name];
    yield [[...path, 'timeout', 'connect'], target.timeout.connect];
    yield [[...path, 'timeout', 'answer'], target.timeout.answer];
    yield [[...path, 'giveUpAfter'], target.giveUpAfter];
    yield [[...path, 'idempotency', 'keyRetention'], target.idempotency.keyRetention];
    yield [[...path, 'breaker', 'open'], target.breaker.open];
    yield [[...path, 'breaker', 'slow'], target.breaker.slow];
  }
  for (const [name, reconciliation] of Object.entries(config.reconciliations)) {
    const path = ['reconciliations', name];
    yield [[...path, 'window', 'lookback'], reconciliation.window.lookback];
    yield [[...path, 'window', 'chunk'], reconciliation.window.chunk];
    yield [[...path, 'recheck', 'delay'], reconciliation.recheck.delay];
    yield [[...path, 'look', 'maxAge'], reconciliation.look.maxAge];
    yield [[...path, 'relook'], reconciliation.relook];
    yield [[...path, 'maxAge'], reconciliation.maxAge];
    for (const side of ['source', 'downstream'] as const) {
      const settings = reconciliation[side];
      if (settings.type !== 'http') yield [[...path, side, 'statementTimeout'], settings.statementTimeout];
    }
    for (const kind of ['missing', 'mismatched', 'extra'] as const) {
      const written = reconciliation.repair[kind];
      if (written === 'report') continue;
      for (const [at, repair] of [written].flat().entries()) {
        const here = [...path, 'repair', kind, ...(Array.isArray(written) ? [at] : [])];
        yield [[...here, 'verify', 'within'], repair.verify.within];
        yield [[...here, 'verify', 'every'], repair.verify.every];
      }
    }
  }
}
