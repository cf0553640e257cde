import type { ErrorRecord, Outcome, Sender } from '../action.ts';

/**
 * The same sender, whose outcomes show no secret of the configuration: a target may repeat in its answer what another
 * target's header holds, and a database may quote an address in an error. Outcomes are stored and logged as they are.
 */
export function maskedSender(sender: Sender, redact: (text: string) => string): Sender {
  return {
    warm: () => sender.warm(),
    ready: () => sender.ready(),
    send: async (payload, context) => maskOutcome(await sender.send(payload, context), redact),
    close: () => sender.close(),
  };
}

function maskOutcome(outcome: Outcome, redact: (text: string) => string): Outcome {
  return {
    ...outcome,
    code: redact(outcome.code),
    request: maskJson(outcome.request, redact),
    answer: maskJson(outcome.answer, redact),
    error: maskJson(outcome.error, redact) as ErrorRecord | null,
  };
}

function maskJson(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) return value.map((item) => maskJson(item, redact));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [redact(name), maskJson(inner, redact)]),
  );
}
