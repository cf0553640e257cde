export interface Options {
  readonly seed: number;
  readonly serve: boolean;
  readonly json: boolean;
}

export const HELP = `npm run demo -- [options]

Starts PostgreSQL, seeds a shop, a payment gateway and a warehouse that an outage has driven apart, and lets trueup
find and repair the difference with config/demo.yaml. About a minute and a half.

  --seed N   another set of data and faults, a whole number from 0 (default 1)
  --serve    keep everything running afterwards, to look around; Ctrl-C ends it
  --json     the last line of stdout is one JSON object with the figures
  --help     this text

Example: npm run demo -- --seed 7 --serve
Exit code: 0 when every figure is as planted, 1 when one is not, 2 for a wrong option.
`;

export type Parsed =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string };

/** Reads the command line. Whatever it does not know is an error, never ignored. */
export function parseOptions(args: readonly string[]): Parsed {
  const options = { seed: 1, serve: false, json: false };
  for (let at = 0; at < args.length; at += 1) {
    const [name = '', inline] = (args[at] ?? '').split('=', 2);
    if (name === '--seed') {
      const text = inline ?? args[++at];
      if (text === undefined || !/^\d{1,9}$/.test(text)) {
        return wrong(
          `--seed takes a whole number from 0 to 999999999, not ${text === undefined ? 'nothing' : `"${text}"`}`,
        );
      }
      options.seed = Number(text);
    } else if (inline !== undefined) return wrong(`${name} takes no value`);
    else if (name === '--serve') options.serve = true;
    else if (name === '--json') options.json = true;
    else if (name === '--help' || name === '-h') return { kind: 'help' };
    else return wrong(`the demo has no option "${name}"`);
  }
  return { kind: 'run', options };
}

function wrong(message: string): Parsed {
  return { kind: 'wrong', message: `${message}. Try: npm run demo -- --help` };
}
