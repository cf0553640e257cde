/** How the rows of a copy are written: PostgreSQL's two formats of COPY. */
export type RawFormat = 'binary' | 'text';

/** Type, and a length that counts itself. */
export const FRAME_HEAD = 5;

const DATA = 0x64; // d
const COPY_DONE = 0x63; // c
const ERROR = 0x45; // E
/** Messages that may stand before or between the rows and say nothing about them. */
const BESIDE: ReadonlySet<number> = new Set([
  0x31, // 1 ParseComplete
  0x32, // 2 BindComplete
  0x48, // H CopyOutResponse
  0x4e, // N NoticeResponse
  0x53, // S ParameterStatus
  0x41, // A NotificationResponse
]);

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
/** Signature, flags and the length of the header's extension. */
const HEADER = SIGNATURE.length + 8;

const TRAILER_LENGTH = FRAME_HEAD + 2;

const CAPACITY = 512 * 1024;

/** What a server sent is no answer to a COPY. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/**
 * The rows of one COPY as they come from the wire, one frame a row, without gaps: `d`, length, payload. Whatever else
 * the server says in between is cut out, as are header and trailer of the binary format, so that two buffers with the
 * same rows hold the same bytes. Memory: what was not consumed yet.
 */
export class FrameBuffer {
  bytes: Buffer;
  /** Where the first row stands that was not consumed. */
  start = 0;
  /** End of the last row that is there in full. */
  whole = 0;
  /** Rows that arrived in full, consumed ones included. */
  rows = 0;
  /** `done`: no row follows. `failed`: the server sent an error, and rows are missing. */
  state: 'open' | 'done' | 'failed' = 'open';
  readonly #format: RawFormat;
  readonly #capacity: number;
  #end = 0;
  #atHeader: boolean;

  /** The buffer grows for what does not fit, and shrinks again. */
  constructor(format: RawFormat, capacity = CAPACITY) {
    this.bytes = Buffer.allocUnsafe(capacity);
    this.#capacity = capacity;
    this.#format = format;
    this.#atHeader = format === 'binary';
  }

  /** Bytes that wait to be consumed, rows that are not complete included. */
  get unread(): number {
    return this.#end - this.start;
  }

  /**
   * Takes what arrived. Once the copy has ended, returns a copy of the bytes from its last message on: they belong to
   * whoever reads the connection next. Throws `FrameError` when this is no copy.
   */
  append(chunk: Uint8Array): Buffer | null {
    this.#makeRoom(chunk.length);
    this.bytes.set(chunk, this.#end);
    this.#end += chunk.length;
    return this.#walk();
  }

  /** Gives up the rows before this place. */
  consumeTo(at: number): void {
    this.start = at;
    if (this.start < this.#end) return;
    this.start = 0;
    this.whole = 0;
    this.#end = 0;
    if (this.bytes.length > this.#capacity) this.bytes = Buffer.allocUnsafe(this.#capacity);
  }

  /** Walks rows that follow each other, which is nearly all of a copy, up to anything else. */
  #walkRows(): void {
    const { bytes } = this;
    const end = this.#end;
    let at = this.whole;
    let rows = 0;
    while (at + FRAME_HEAD <= end && bytes[at] === DATA) {
      const next = at + frameLength(bytes, at);
      if (next > end || next - at === TRAILER_LENGTH) break;
      rows += 1;
      at = next;
    }
    this.whole = at;
    this.rows += rows;
  }

  #walk(): Buffer | null {
    while (this.#end - this.whole >= FRAME_HEAD) {
      if (!this.#atHeader) this.#walkRows();
      if (this.#end - this.whole < FRAME_HEAD) break;
      const type = this.bytes[this.whole];
      if (type === COPY_DONE || type === ERROR) return this.#finish(type);
      const next = this.whole + frameLength(this.bytes, this.whole);
      if (type === DATA) {
        if (next > this.#end) break;
        if (this.#atHeader) this.#cutHeader(next);
        else if (this.#isTrailer(next)) this.#cutOut(next);
        else {
          this.rows += 1;
          this.whole = next;
        }
      } else if (type !== undefined && BESIDE.has(type)) {
        if (next > this.#end) break;
        this.#cutOut(next);
      } else {
        throw new FrameError(`the server sent a message of type ${type} in the middle of a copy`);
      }
    }
    return null;
  }

  #finish(type: number): Buffer {
    this.state = type === COPY_DONE ? 'done' : 'failed';
    const rest = Buffer.from(this.bytes.subarray(this.whole, this.#end));
    this.#end = this.whole;
    return rest;
  }

  #cutOut(next: number): void {
    if (this.whole === this.start) {
      this.start = next;
      this.whole = next;
      return;
    }
    this.bytes.copyWithin(this.whole, next, this.#end);
    this.#end -= next - this.whole;
  }

  /** The header shares a message with the first row: that row gets a head of its own, where the header ends. */
  #cutHeader(next: number): void {
    const payload = this.whole + FRAME_HEAD;
    const known =
      next - payload >= HEADER && SIGNATURE.equals(this.bytes.subarray(payload, payload + SIGNATURE.length));
    const rest = known ? payload + HEADER + this.bytes.readUInt32BE(payload + HEADER - 4) : next + 1;
    if (rest > next) throw new FrameError('the copy does not begin with the header of the binary format');
    this.#atHeader = false;
    const at = rest - FRAME_HEAD;
    this.bytes[at] = DATA;
    this.bytes.writeUInt32BE(next - at - 1, at + 1);
    // The first row: nothing stands before it.
    this.start = rest === next ? next : at;
    this.whole = this.start;
  }

  /** The binary format ends with a count of -1 where a row would have its number of columns. */
  #isTrailer(next: number): boolean {
    const payload = this.whole + FRAME_HEAD;
    return (
      this.#format === 'binary' &&
      next - this.whole === TRAILER_LENGTH &&
      this.bytes[payload] === 0xff &&
      this.bytes[payload + 1] === 0xff
    );
  }

  #makeRoom(length: number): void {
    if (this.#end + length <= this.bytes.length) return;
    const needed = this.unread + length;
    const from = this.bytes;
    // Grows for rows that are larger than the buffer, and shrinks again after them.
    if (needed > from.length || (from.length > this.#capacity && needed <= this.#capacity / 2)) {
      let capacity = this.#capacity;
      while (capacity < needed) capacity *= 2;
      this.bytes = Buffer.allocUnsafe(capacity);
    }
    from.copy(this.bytes, 0, this.start, this.#end);
    this.#end -= this.start;
    this.whole -= this.start;
    this.start = 0;
  }
}

/** Length of the message that begins here, its head included. */
export function frameLength(bytes: Buffer, at: number): number {
  const length = readInt32(bytes, at + 1);
  if (length < 4) throw new FrameError(`the server sent a message of length ${length}`);
  return length + 1;
}

/** As `readInt32BE`, in less time: this is done several times for each row. */
export function readInt32(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] ?? 0) << 24) |
    ((bytes[at + 1] ?? 0) << 16) |
    ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)
  );
}
