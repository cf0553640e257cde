import type { Instant } from './instant.ts';
import type { FrameBuffer, RawFormat } from './raw/frame-buffer.ts';
import type { RawLayout } from './raw/layout.ts';
import type { Key, SideRecord, ValueType, Window } from './record.ts';

/**
 * How the engine reads a side. Implementations live in `sides/`. A side only ever reads. Every method throws
 * `SideError` when it could not read everything it was asked for: an error is never a difference (rule 5.3).
 */
export interface Side {
  /** For people: `postgres shop.public.order_tasks` or `http gateway`. Holds no secret. */
  readonly label: string;
  /** True when `scan` exists for this configuration (a time column, or a list call). */
  readonly canScan: boolean;
  /** True when `scan` yields records in the byte order of their keys. */
  readonly ordered: boolean;
  /** Left out where windows cannot be compared by the bytes of their rows. */
  readonly raw?: RawSource;
  /** This side's own clock, and how far back writes that nobody can see yet may be stamped (rule 5.8). */
  clock(signal: AbortSignal): Promise<SideClock>;
  /** All records of the window, in pages. Duplicates are yielded as often as they exist. */
  scan(window: Window, signal: AbortSignal): AsyncIterable<readonly SideRecord[]>;
  /** All records that have one of the keys, in any order. Any number of keys; the side cuts them into calls. */
  lookup(keys: readonly Key[], signal: AbortSignal): Promise<readonly SideRecord[]>;
  /** For `trueup check`: what the catalogue says, what the plan would be, and what is wrong. */
  describe(signal: AbortSignal): Promise<SideDescription>;
  close(): Promise<void>;
}

/** Gives a window as the bytes of its rows, in the order of their keys (plan `raw`). */
export interface RawSource {
  /** The columns that would be copied, or a sentence about why this side cannot be compared by bytes. */
  layout(signal: AbortSignal): Promise<RawLayout | string>;
  /** Starts to copy a window, in a snapshot of its own. The caller closes or discards the stream. */
  open(window: Window, format: RawFormat, signal: AbortSignal): Promise<RawStream>;
}

export interface RawStream {
  /** The rows that came and were not compared yet. */
  readonly frames: FrameBuffer;
  /** True when `read` gives all that a lookup would give, not the compared fields alone. */
  readonly whole: boolean;
  /** Resolves when more of the window came, or its end. Throws what `scan` would throw. */
  more(): Promise<void>;
  /** Says that rows were taken, so that further ones may come. */
  flow(): void;
  /** The record of one row. */
  read(payload: Buffer): SideRecord;
  /** Ends the snapshot after the last row. Throws when the window was not read in full. */
  close(): Promise<void>;
  /** Gives up the stream and what the server still does for it. */
  discard(): void;
}

export interface SideClock {
  readonly now: Instant;
  /** Start of the oldest transaction that may still write; null when there is none. */
  readonly oldestOpen: Instant | null;
  /** False when open transactions cannot be seen here; then `settle >= maxTransactionAge` is demanded. */
  readonly seesTransactions: boolean;
}

export interface SideDescription {
  readonly label: string;
  readonly columns: readonly { readonly name: string; readonly type: ValueType; readonly native: string }[];
  /** Findings about key order and indexes, in sentences. */
  readonly notes: readonly string[];
  readonly warnings: readonly string[];
  readonly samples: readonly SideRecord[];
}

/** A side could not be read. `where` names side and host without secrets. */
export class SideError extends Error {
  override readonly name = 'SideError';
  readonly code:
    | 'TRU_SIDE_UNREACHABLE'
    | 'TRU_SIDE_REFUSED'
    | 'TRU_SIDE_BROKEN_ANSWER'
    | 'TRU_SIDE_MISCONFIGURED';
  readonly where: string;
  /** True when reading again later may help. */
  readonly transient: boolean;

  constructor(
    code: SideError['code'],
    where: string,
    message: string,
    options: { transient: boolean; cause?: unknown },
  ) {
    super(`${where}: ${message}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.where = where;
    this.transient = options.transient;
  }
}

/** Takes a slot of a target's shared read gate before a call (rule 6.16). Resolves when the call may start. */
export interface ReadGate {
  take(target: string, signal: AbortSignal): Promise<void>;
}
