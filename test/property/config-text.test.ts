import fc from 'fast-check';
import { expect, it } from 'vitest';
import { interpolate, type Outside } from '../../src/config/interpolate.ts';
import { createRedactor } from '../../src/config/redact.ts';

/** Long enough to be hidden, and not made of the mask itself. */
const secret = fc
  .string({ unit: 'grapheme-ascii', minLength: 6, maxLength: 40 })
  .filter(
    (text) => !'[secret]'.includes(text.slice(0, 1)) && /[^a-z]/.test(text) && !text.includes('[secret]'),
  );

it('no secret is left in a redacted text, in any of its forms', () => {
  const forms = [
    (text: string) => text,
    encodeURIComponent,
    (text: string) => JSON.stringify(text).slice(1, -1),
    (text: string) => Buffer.from(text).toString('base64'),
    (text: string) => Buffer.from(text).toString('base64url'),
  ];
  fc.assert(
    fc.property(secret, fc.nat(forms.length - 1), fc.string(), fc.string(), (text, form, before, after) => {
      const shown = (forms[form] ?? String)(text);
      expect(createRedactor([text])(`${before}|${shown}|${after}`)).not.toContain(shown);
    }),
  );
});

it('redacting twice changes nothing more', () => {
  fc.assert(
    fc.property(fc.array(secret, { maxLength: 4 }), fc.string(), (secrets, text) => {
      const redact = createRedactor(secrets);
      const once = redact(`${text} ${secrets.join(' ')}`);
      expect(redact(once)).toBe(once);
    }),
  );
});

it('a text without a secret is not changed', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'abcdefgh :/') }), (text) => {
      expect(createRedactor(['ZZZZZZ-secret'])(text)).toBe(text);
    }),
  );
});

const outside: Outside = { env: (name) => `<${name}>`, file: () => ({ unreadable: 'ENOENT' }) };

it('a document without ${ is interpolated into itself', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (document) => {
      fc.pre(!JSON.stringify(document).includes('${'));
      const result = interpolate(document, outside);
      expect(result.document).toEqual(document);
      expect(result.values).toEqual([]);
    }),
  );
});

it('any text survives when its ${ are escaped', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('$', '{', '}', 'e', 'n', 'v', ':', 'A', '-') }), (text) => {
      const escaped = text.replaceAll('${', () => '$${');
      fc.pre(escaped.replaceAll('$${', () => '').includes('${') === false);
      const result = interpolate({ text: escaped }, outside);
      expect(result).toMatchObject({ document: { text }, problems: [], interpolated: [] });
    }),
  );
});

it('every reference is replaced by what it names, and nothing else is touched', () => {
  const plain = fc.string().filter((text) => !/[$]/.test(text));
  const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,8}$/);
  fc.assert(
    fc.property(fc.array(fc.tuple(plain, name), { minLength: 1, maxLength: 5 }), plain, (parts, last) => {
      const written = parts.map(([text, variable]) => `${text}\${env:${variable}}`).join('') + last;
      const { document, values } = interpolate([written], outside);
      expect(document).toEqual([parts.map(([text, variable]) => `${text}<${variable}>`).join('') + last]);
      expect(values.map((value) => value.text)).toEqual(parts.map(([, variable]) => `<${variable}>`));
    }),
  );
});
