import type pg from 'pg';
import { FrameBuffer, type RawFormat } from '../raw/frame-buffer.ts';

export interface CopyOptions {
  readonly text: string;
  readonly format: RawFormat;
  /** Longest wait for the next bytes, in ms. */
  readonly silence: number;
  /** Longest time for the whole copy, in ms. */
  readonly limit: number;
}

/** What waits unread before the server is asked to wait; as much again may come from what is on its way. */
const HIGH_WATER = 256 * 1024;
const LOW_WATER = HIGH_WATER / 2;

type DataListener = (chunk: Buffer) => void;

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** A statement that gives no row in time is given up as the server would: with its code. */
class SilenceError extends Error {
  override readonly name = 'SilenceError';
  readonly code = '57014';
}

/**
 * A `COPY ... TO STDOUT` whose bytes are kept as they come off the socket. While it runs, the driver's own reader is off
 * the connection; the messages that end the copy are given back to it, so that the connection can be used again.
 * The copy reads only as far ahead as its buffer goes: then TCP makes the server wait.
 */
export class CopyOut implements pg.Submittable {
  readonly frames: FrameBuffer;
  /** Read by the driver: ends the query after so many ms. */
  readonly query_timeout: number;
  /** Set by the driver, to be told about the end. */
  callback?: (error?: Error) => void;
  readonly #text: string;
  readonly #silence: number;
  readonly #drivers: DataListener[] = [];
  #stream: pg.Connection['stream'] | undefined;
  #paused = false;
  #error: Error | undefined;
  #waiting: Waiting | undefined;
  #ending = false;
  #ready = false;

  constructor(options: CopyOptions) {
    this.frames = new FrameBuffer(options.format);
    this.query_timeout = options.limit;
    this.#text = options.text;
    this.#silence = options.silence;
  }

  /** Resolves when more came, or when no more will come. Rejects when the copy failed. */
  async more(): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    if (this.frames.state === 'done') return;
    this.#resume();
    await this.#wait();
  }

  /** Lets bytes come again once there is room for them. */
  flow(): void {
    if (this.frames.unread < LOW_WATER) this.#resume();
  }

  /** Resolves when the connection is ready for its next statement. Rejects when the copy failed. */
  async end(): Promise<void> {
    if (this.#error !== undefined) throw this.#error;
    if (this.#ready) return;
    this.#ending = true;
    this.#resume();
    await this.#wait();
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(), this.#silence);
      this.#waiting = { resolve, reject, timer };
    });
  }

  /** Called by the driver when the connection is free. */
  submit(connection: pg.Connection): void {
    const { stream } = connection;
    this.#stream = stream;
    for (const listener of stream.listeners('data')) this.#drivers.push(listener as DataListener);
    stream.on('data', this.#onData);
    for (const listener of this.#drivers) stream.removeListener('data', listener);
    // As a prepared statement the text can be one statement only, whatever stands in it.
    stream.cork();
    connection.parse({ name: '', text: this.#text, types: [] }, true);
    connection.bind({}, true);
    connection.execute({}, true);
    connection.sync();
    stream.uncork();
  }

  readonly #onData = (chunk: Buffer): void => {
    let rest: Buffer | null;
    try {
      rest = this.frames.append(chunk);
    } catch (error) {
      // Nobody knows where the next message begins: the connection is of no use any more.
      this.handleError(error instanceof Error ? error : new Error(String(error)));
      this.#stream?.destroy();
      return;
    }
    if (rest !== null) this.#giveBack(rest);
    else if (this.frames.unread >= HIGH_WATER) {
      this.#paused = true;
      this.#stream?.pause();
    }
    // After an error the driver says what it was.
    if (this.frames.state !== 'failed' && !this.#ending) this.#wake();
  };

  #giveBack(rest: Buffer): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    for (const listener of this.#drivers) stream.on('data', listener);
    stream.removeListener('data', this.#onData);
    this.#resume();
    for (const listener of this.#drivers) listener.call(stream, rest);
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#stream?.resume();
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    clearTimeout(waiting.timer);
    if (this.#error === undefined) waiting.resolve();
    else waiting.reject(this.#error);
  }

  #giveUp(): void {
    this.handleError(new SilenceError(`nothing came for ${this.#silence} ms`));
  }

  // What follows is called by the driver.

  handleError(error: Error): void {
    this.#error ??= error;
    this.callback?.(error);
    this.#wake();
  }

  handleReadyForQuery(): void {
    this.#ready = true;
    this.callback?.();
    if (this.#ending) this.#wake();
  }

  handleCommandComplete(): void {}
}
