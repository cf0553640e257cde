import type { Path } from './path.ts';
import { createRedactor, secretsIn } from './redact.ts';
import type { Config } from './schema.ts';
import { Secret } from './secret.ts';

/** Stands in a stored document where a secret was written out. */
export const HIDDEN = '[secret]';

/** What must not be shown of the secret fields of a config, whether it was written out or came from outside. */
export function configSecrets(config: Config): readonly string[] {
  return secretFields(config).flatMap(({ path, secret }) => hiddenParts(path, secret.reveal()));
}

/**
 * The document without the secrets that stand in it as they are. `${env:X}` stays. The host of an address stays too,
 * so that a stored revision still says what it was about.
 */
export function withoutSecrets(document: unknown, config: Config): unknown {
  const fields = secretFields(config);
  const visit = (node: unknown, path: Path): unknown => {
    if (typeof node === 'string') {
      if (/(^|[^$])\$\{/.test(node)) return createRedactor([])(node);
      const field = fields.find(
        (one) => samePath(one.path, path) && one.secret.reveal() === withoutEscapes(node),
      );
      return field === undefined ? node : mask(node, hiddenParts(path, node));
    }
    if (Array.isArray(node)) return node.map((item, at) => visit(item, [...path, at]));
    if (node === null || typeof node !== 'object') return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, value]) => [key, visit(value, [...path, key])]),
    );
  };
  return visit(document, []);
}

function mask(text: string, parts: readonly string[]): string {
  const longestFirst = [...parts].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((masked, part) => masked.replaceAll(part, HIDDEN), text);
}

/** Addresses that are called to tell somebody are secret as a whole: whoever has them can post. */
function hiddenParts(path: Path, text: string): readonly string[] {
  return path[0] === 'alerts' ? [text, ...secretsIn(text)] : secretsIn(text);
}

function secretFields(config: Config): readonly { path: Path; secret: Secret }[] {
  const visit = (node: unknown, path: Path): { path: Path; secret: Secret }[] => {
    if (node instanceof Secret) return [{ path, secret: node }];
    if (Array.isArray(node)) return node.flatMap((item, at) => visit(item, [...path, at]));
    if (node === null || typeof node !== 'object') return [];
    return Object.entries(node).flatMap(([key, value]) => visit(value, [...path, key]));
  };
  return visit(config, []);
}

function samePath(a: Path, b: Path): boolean {
  return a.length === b.length && a.every((part, at) => part === b[at]);
}

function withoutEscapes(text: string): string {
  return text.replaceAll('$${', '${');
}
