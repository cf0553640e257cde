import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { configJsonSchema } from '../../../src/config/json-schema.ts';

const FILE = fileURLToPath(new URL('../../../config/trueup.schema.json', import.meta.url));

it('is the committed file; if not, run: npm run schema', () => {
  expect(readFileSync(FILE, 'utf8')).toBe(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
});

it('describes places, allows interpolation for shaped values and knows no other keys', () => {
  const schema = JSON.parse(JSON.stringify(configJsonSchema()));
  expect(schema.title).toBe('trueup configuration');
  expect(schema.additionalProperties).toBe(false);
  expect(schema.required).toEqual(['version', 'reconciliations']);
  const { targets, http } = schema.properties;
  expect(targets.additionalProperties.properties.watermark.description).toMatch(
    /most sends in any 60 seconds/,
  );
  expect(targets.additionalProperties.properties.url.writeOnly).toBe(true);
  expect(http.properties.port.anyOf).toContainEqual({ $ref: '#/$defs/fromOutside' });
  const fromOutside = new RegExp(schema.$defs.fromOutside.pattern);
  expect(fromOutside.test(`\${env:PORT:-7070}`)).toBe(true);
  expect(fromOutside.test('7070')).toBe(false);
});

describe('descriptions', () => {
  it('are there for each key, so that an editor and the reference page can show it', () => {
    const schema = configJsonSchema();
    expect(silentKeys(schema)).toEqual([]);
    // The walk reaches the keys of groups, of maps, of lists and of forms.
    const keys = [...keysOf(schema)].map(([path]) => path);
    for (const end of ['.queue.tls.ca', '.answers.fatal', '.when.source', '.keyword', '.lookup.batch'])
      expect(keys.some((path) => path.endsWith(end))).toBe(true);
    expect(keys.length).toBeGreaterThan(150);
  });

  it('are missed where they are not', () => {
    const planted = z.strictObject({
      told: z.string().describe('a text'),
      group: z.strictObject({ silent: z.string() }).describe('a group'),
    });
    expect(silentKeys(z.toJSONSchema(planted))).toEqual(['.group.silent']);
  });
});

function silentKeys(schema: object): string[] {
  return [...keysOf(schema)].filter(([, key]) => !key.description?.trim()).map(([path]) => path);
}

/** Every key of every group of a JSON Schema, with what describes it. */
function* keysOf(node: unknown, path = ''): Generator<[string, { readonly description?: string }]> {
  if (node === null || typeof node !== 'object') return;
  for (const [keyword, inner] of Object.entries(node)) {
    if (keyword === 'properties' || keyword === '$defs') {
      for (const [key, schema] of Object.entries(inner)) {
        const at = keyword === '$defs' ? `#${key}` : `${path}.${key}`;
        // Zod's name for any JSON; a person never writes it.
        if (!/^#(__schema\d+|fromOutside)$/.test(at)) yield [at, schema as object];
        yield* keysOf(schema, at);
      }
    } else if (!['default', 'enum', 'const'].includes(keyword)) yield* keysOf(inner, path);
  }
}
