import type { Payload, SendContext } from '../../src/compensate/action.ts';
import { type ConfigInput, configSchema, type Target } from '../../src/config/schema.ts';

type TargetInput = NonNullable<ConfigInput['targets']>[string];

/** A target as the config schema would give it, defaults filled in. */
export function targetConfig(input: TargetInput): Target {
  const config = configSchema.parse({ version: 1, targets: { t: input }, reconciliations: {} });
  const { t: target } = config.targets;
  if (target === undefined) throw new Error('the schema lost the target');
  return target;
}

/** The context of a first attempt. Its deadline is far away unless a signal is given. */
export function sendContext(changes: Partial<SendContext> = {}): SendContext {
  return {
    idempotencyKey: 'orders:A-1:create:2026-11-30',
    attempt: 1,
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    signal: AbortSignal.timeout(20_000),
    diff: {
      key: ['A-1'],
      kind: 'missing',
      fields: [],
      source: null,
      downstream: null,
      sourceCount: 1,
      downstreamCount: 0,
      sourceDigest: null,
      downstreamDigest: null,
    },
    slot: async () => undefined,
    ...changes,
  };
}

export function httpPayload(changes: Partial<Extract<Payload, { type: 'http' }>> = {}): Payload {
  return { type: 'http', method: 'POST', path: '/orders', headers: {}, body: '{"no":"A-1"}', ...changes };
}
