import type { Target } from '../../config/schema.ts';
import { displayUrl } from '../../config/secret.ts';
import { EXIT, TrueupError } from '../../error.ts';

/** The target's address. Throws `TrueupError` (`TRU_CONFIG_TARGET`) when it is missing or not of these protocols. */
export function targetUrl(
  targetName: string,
  target: Target,
  protocols: readonly string[],
  actionType: string,
): URL {
  const wanted = `an ${actionType} action needs ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`;
  const fix = { exit: EXIT.usage, hint: `set targets.${targetName}.url` };
  if (target.url === undefined)
    throw new TrueupError('TRU_CONFIG_TARGET', `target "${targetName}" has no url; ${wanted}`, fix);
  const text = target.url.reveal();
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !protocols.includes(url.protocol))
    throw new TrueupError(
      'TRU_CONFIG_TARGET',
      `the url of target "${targetName}" is ${displayUrl(target.url)}; ${wanted}`,
      fix,
    );
  return url;
}
