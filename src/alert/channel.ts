import type { AlertMessage } from './message.ts';

/** How one send ended. Neither `answer` nor `reason` holds an address, token or secret. */
export type Delivered =
  | { readonly sent: true; readonly answer: string }
  | {
      readonly sent: false;
      /** True when the same message can never be taken; it is given up on this channel. */
      readonly permanent: boolean;
      /** How long the channel asked to be left alone; null when it did not. */
      readonly retryAfterMs: number | null;
      readonly reason: string;
    };

/** Tells people. Implementations in `channels/`. `send` never throws: a failure is a `Delivered`. */
export interface Channel {
  readonly name: string;
  /** Most messages in 60 seconds. */
  readonly rate: number;
  send(message: AlertMessage, signal: AbortSignal): Promise<Delivered>;
}
