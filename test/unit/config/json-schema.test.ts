import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
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
