import { z } from 'zod';
import { configSchema } from './schema.ts';

interface Json {
  type?: unknown;
  const?: unknown;
  enum?: unknown;
  pattern?: unknown;
  maximum?: unknown;
  [keyword: string]: unknown;
}

/** What may stand wherever a number, a choice or a shaped text is expected. */
const FROM_OUTSIDE = {
  type: 'string',
  pattern: '\\$\\{(env|plain|file):[^}]+\\}',
  description: `\${env:NAME}, \${env:NAME:-default}, \${plain:NAME} (no secret) or \${file:/path}`,
};

/** The JSON Schema of a config file, for editors: `config/trueup.schema.json`. */
export function configJsonSchema(): Json {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-2020-12',
  }) as Json;
  const { $defs, ...top } = allowInterpolation(schema) as Json;
  return {
    $schema,
    $id: 'urn:trueup:config:1',
    title: 'trueup configuration',
    description: `What trueup compares, when, and how it repairs. Secrets come from \${env:NAME} or \${file:/path}.`,
    ...top,
    $defs: { ...($defs as Json | undefined), fromOutside: FROM_OUTSIDE },
  };
}

/** Keys whose value is a map of names to schemas, not a schema. */
const MAPS = new Set(['properties', '$defs', 'patternProperties']);
/** Names of entries and told-apart types are written out, and defaults are values. */
const LEFT_ALONE = new Set(['propertyNames', 'default', 'enum', 'const', 'required', 'examples']);

function allowInterpolation(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(allowInterpolation);
  if (node === null || typeof node !== 'object') return node;
  const entries = Object.entries(node as Json).map(([key, value]) => {
    if (LEFT_ALONE.has(key) || (key === 'anyOf' && takesAnyText(value))) return [key, value];
    if (!MAPS.has(key)) return [key, allowInterpolation(value)];
    return [
      key,
      Object.fromEntries(Object.entries(value as Json).map(([name, one]) => [name, allowInterpolation(one)])),
    ];
  });
  const schema = Object.fromEntries(entries) as Json;
  if (!isShapedScalar(schema)) return schema;
  const { description, default: fallback, ...shape } = schema;
  // Zod's own bound of whole numbers tells a person nothing.
  if (shape.maximum === Number.MAX_SAFE_INTEGER) delete shape.maximum;
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [shape, { $ref: '#/$defs/fromOutside' }],
  };
}

function takesAnyText(options: unknown): boolean {
  return (options as readonly Json[]).some(
    (option) => Object.keys(option).join() === 'type' && option.type === 'string',
  );
}

function isShapedScalar(schema: Json): boolean {
  const type = schema.type;
  if (schema.const !== undefined) return false;
  if (type === 'number' || type === 'integer' || type === 'boolean') return true;
  return type === 'string' && (schema.enum !== undefined || schema.pattern !== undefined);
}
