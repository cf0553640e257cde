import { expect, it } from 'vitest';
import { interpolate, type Outside } from '../../../src/config/interpolate.ts';

const outside: Outside = {
  env: (name) => ({ SET: 'value', EMPTY: '' })[name],
  file: (path) => (path === '/token' ? { text: 'line\r\n' } : { unreadable: 'ENOENT' }),
};

it.each([
  [`a \${env:SET} b \${env:SET}`, 'a value b value'],
  [`\${env:NOT:-default}`, 'default'],
  [`\${env:EMPTY:-default}`, 'default'],
  [`\${env:SET:-default}`, 'value'],
  [`\${env:EMPTY}`, ''],
  [`\${env:NOT:-postgres://a:b@h/d?x=1}`, 'postgres://a:b@h/d?x=1'],
  [`Bearer \${file:/token}`, 'Bearer line'],
  [`$\${env:SET}`, `\${env:SET}`],
  ['$$ {env:SET} $1', '$$ {env:SET} $1'],
  [`x\${env:NOT:-}`, 'x'],
])('%s becomes %s', (written, expected) => {
  expect(interpolate({ k: written }, outside)).toMatchObject({ document: { k: expected }, problems: [] });
});

it('does not interpolate what it put in', () => {
  const nested: Outside = { ...outside, env: () => `\${env:SET}` };
  expect(interpolate([`\${env:A}`], nested).document).toEqual([`\${env:SET}`]);
});

it('leaves out keys and list items that stay empty', () => {
  const { document } = interpolate(
    { a: `\${env:NOT:-}`, b: [`\${env:EMPTY:-}`, 'x'], c: 1, d: null },
    outside,
  );
  expect(document).toEqual({ b: ['x'], c: 1, d: null });
});

it('collects what came from outside and not the defaults', () => {
  const document = { a: [`\${env:SET}`, `\${env:NOT:-plain}`], b: { c: `\${file:/token}` } };
  expect(interpolate(document, outside).values).toEqual([
    { path: ['a', 0], text: 'value' },
    { path: ['b', 'c'], text: 'line' },
  ]);
});

it.each([
  [`\${env:NOT}`, 'needs the environment variable NOT, which is not set'],
  [`\${file:/none}`, 'needs the file /none, which cannot be read (ENOENT)'],
  [`\${HOME}`, `cannot use \${HOME}`],
  [`\${env:}`, `cannot use \${env:}`],
  [`\${env:A B}`, `cannot use \${env:A B}`],
  [`a \${env:SET`, `has a \${ without its }`],
])('%s is a problem at its place', (written, message) => {
  const { problems } = interpolate({ deep: [{ key: written }] }, outside);
  expect(problems).toMatchObject([{ path: ['deep', 0, 'key'], message }]);
});

it('keeps a key named __proto__ as data', () => {
  const { document } = interpolate(JSON.parse('{"__proto__": {"a": "x"}}'), outside);
  expect(Object.keys(document as object)).toEqual(['__proto__']);
});
