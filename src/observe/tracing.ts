import { createHash, randomBytes } from 'node:crypto';
import { type Attributes, context, type Span, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';

/** W3C Trace Context: lower-case hexadecimal, not all zeros. */
const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/;
const SPAN_ID = /^(?!0{16})[0-9a-f]{16}$/;

export function isTraceId(text: string): boolean {
  return TRACE_ID.test(text);
}

export function newTraceId(): string {
  return randomHex(16);
}

/**
 * The `traceparent` header for a call that belongs to a trace, with a new parent id; sampled. `traceId` comes from
 * `newTraceId` or `mappedTraceId`. Throws `RangeError` for any other text, since a receiver would drop the header.
 */
export function traceparent(traceId: string): string {
  if (!isTraceId(traceId))
    throw new RangeError('a trace id is 32 lower-case hexadecimal digits, not all zeros');
  return `00-${traceId}-${randomHex(8)}-01`;
}

/** The ids of a `traceparent`; null when it is not valid. Versions after 00 may have more parts at the end. */
export function parseTraceparent(text: string): { traceId: string; spanId: string; sampled: boolean } | null {
  const [version = '', traceId = '', spanId = '', flags = '', ...more] = text.trim().split('-');
  if (!/^[0-9a-f]{2}$/.test(version) || version === 'ff' || (version === '00' && more.length > 0))
    return null;
  if (!TRACE_ID.test(traceId) || !SPAN_ID.test(spanId) || !/^[0-9a-f]{2}$/.test(flags)) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/**
 * The trace id for a record that carries one of its own. 32 hexadecimal digits are taken as they are (in lower case);
 * any other text is hashed to 32 digits, the same each time, and `original` keeps it as an attribute.
 */
export function mappedTraceId(recordTraceId: string): { traceId: string; original: string | null } {
  const lower = recordTraceId.toLowerCase();
  if (isTraceId(lower)) return { traceId: lower, original: null };
  const traceId = createHash('sha256').update(recordTraceId).digest('hex').slice(0, 32);
  return { traceId, original: recordTraceId };
}

/**
 * Runs `fn` in a span, through whatever OpenTelemetry SDK the process has; without one it only runs `fn`. A throw
 * marks the span as failed and goes on. `parent` is a `traceparent`: the span becomes part of that trace.
 */
export async function withSpan<T>(
  name: string,
  attributes: Attributes,
  fn: (span: Span) => Promise<T>,
  parent?: string,
): Promise<T> {
  return trace
    .getTracer('trueup')
    .startActiveSpan(name, { attributes }, parentContext(parent), async (span) => {
      try {
        return await fn(span);
      } catch (error) {
        // Only the kind of error: its text may hold what the log would redact.
        span.setStatus({
          code: SpanStatusCode.ERROR,
          message: error instanceof Error ? error.name : typeof error,
        });
        throw error;
      } finally {
        span.end();
      }
    });
}

function parentContext(parent: string | undefined) {
  const ids = parent === undefined ? null : parseTraceparent(parent);
  if (ids === null) return context.active();
  const traceFlags = ids.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(context.active(), {
    traceId: ids.traceId,
    spanId: ids.spanId,
    traceFlags,
    isRemote: true,
  });
}

/** All zeros mean "none" in W3C Trace Context. */
function randomHex(bytes: number): string {
  const hex = randomBytes(bytes).toString('hex');
  return /^0+$/.test(hex) ? randomHex(bytes) : hex;
}
