import pc from 'picocolors';

/** Where the demo says what it is doing. */
export interface Progress {
  /** A step that began. */
  step(text: string): void;
  /** Figures that change; on a terminal they take the place of the ones before. */
  figures(text: string): void;
  /** Text that stays. */
  print(text: string): void;
}

/** Plain lines of figures come no more often than this. */
const PLAIN_EVERY_MS = 10_000;

export function progressOn(stream: NodeJS.WriteStream): Progress {
  const color = pc.createColors(stream.isTTY === true && pc.isColorSupported);
  const startedAt = performance.now();
  let open = false;
  let lastPlain = Number.NEGATIVE_INFINITY;
  const stamp = () => color.dim(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s `);
  const closeLine = () => {
    if (open) stream.write('\n');
    open = false;
  };
  return {
    step: (text) => {
      closeLine();
      stream.write(`${stamp()} ${text}\n`);
    },
    figures: (text) => {
      if (stream.isTTY === true) {
        // Longer than the line it would wrap, and the next one could not take its place.
        const room = Math.max(20, (stream.columns ?? 80) - 10);
        stream.write(`\r\u001b[2K${stamp()} ${text.slice(0, room)}`);
        open = true;
      } else if (performance.now() - lastPlain >= PLAIN_EVERY_MS) {
        lastPlain = performance.now();
        stream.write(`${stamp()} ${text}\n`);
      }
    },
    print: (text) => {
      closeLine();
      stream.write(`${text}\n`);
    },
  };
}
