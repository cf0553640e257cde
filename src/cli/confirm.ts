import { createInterface } from 'node:readline';
import { EXIT, TrueupError } from '../error.ts';
import { say } from './output.ts';

/**
 * Asks a person before many things are done at once; where nobody can be asked, `--yes` is needed. Returns when the
 * answer was `expected`, and throws otherwise.
 */
export async function confirm(what: string, expected: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY) throw nothingDone(`add --yes to ${what}`);
  const answer = await answerTo(`${what}? Type ${expected} to go on: `);
  if (answer === null) say('');
  if (answer?.trim() !== expected) throw nothingDone(`that was not ${expected}`);
}

/** Null when the input ended (Ctrl-C, Ctrl-D). */
function answerTo(question: string): Promise<string | null> {
  const line = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    line.once('close', () => resolve(null));
    line.question(question, (answer) => {
      resolve(answer);
      line.close();
    });
  });
}

function nothingDone(why: string): TrueupError {
  return new TrueupError('TRU_USAGE', `nothing was done: ${why}`, { exit: EXIT.usage });
}
