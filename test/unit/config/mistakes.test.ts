import { describe, expect, it } from 'vitest';
import { pair, problemsOf } from './in-file.ts';

/** Each problem as a person reads it. */
const told = async (yaml: string) =>
  (await problemsOf(yaml)).map(({ path, message, hint }) =>
    path === ''
      ? `${message} | ${hint}`
      : `${path.replace('reconciliations.orders.', '')}: ${message} | ${hint}`,
  );

const target = (more: string) => pair('', `targets: { a: ${more} }`);
const TARGETS = 'targets: { partner: { url: "http://127.0.0.1:1" } }';
const answers = (fatal: string) =>
  `repair: { missing: { target: partner, action: { type: http, path: /x, answers: { fatal: ${fatal} } } } }`;
const FATAL = 'repair.missing.action.answers.fatal';

describe('a file that is no config at all', () => {
  it.each([
    ['nothing', '', 'is empty | write one with: trueup init'],
    ['comments', '# later\n', 'is empty | write one with: trueup init'],
    ['a word', 'hello', '"hello" is a text, not a group of keys | begin with version: 1, or write'],
    ['a list', '- a\n', 'is a list, not a group of keys | begin with version: 1, or write'],
    ['tabs', 'version: 1\nreconciliations:\n\ta: b\n', 'is indented with a tab | indent with spaces'],
    ['open brackets', 'version: [', 'is not valid YAML'],
    ['two documents', 'version: 1\n---\nversion: 1\n', 'holds more than one document | remove the line ---'],
    ['no text', 'version: 1\0', 'is no text file | give the path of a YAML file'],
    ['an abyss', `a: ${'['.repeat(5000)}${']'.repeat(5000)}`, 'is nested too deeply'],
  ])('is told from %s', async (_, yaml, expected) => {
    const [only, ...more] = await told(yaml);
    expect(only).toContain(expected);
    expect(more).toEqual([]);
  });
});

describe('aliases', () => {
  const letters = [...'abcdefghijklmnopqrst'];
  const bomb = (of: (previous: string) => string) =>
    letters
      .map((name, at) => `${name}: &${name} ${at === 0 ? '[x, x]' : of(`*${letters[at - 1]}`)}`)
      .join('\n');

  it.each([
    ['lists', bomb((one) => `[${Array(9).fill(one).join(', ')}]`)],
    ['maps', bomb((one) => `{ p: ${one}, q: ${one} }`)],
  ])('that unfold %s without end are refused', async (_, yaml) => {
    expect(await told(`version: 1\n${yaml}\nreconciliations: *t\n`)).toEqual([
      'has aliases that unfold to more than can be meant | write the repeated parts out',
    ]);
  });

  it('that refer to themselves or to nothing are refused, and others are followed', async () => {
    expect(await told('version: 1\nreconciliations: &a { orders: *a }\n')).toEqual([
      'has an *alias inside its own &anchor | write the inner part out',
    ]);
    expect(await told(pair('', 'targets: *nope'))).toEqual([
      'refers to *nope, and there is no &nope before it | define the &anchor first',
    ]);
    const shared = pair('', 'targets: { a: &one { watermark: 0 }, b: *one, c: { <<: *one, reads: 5 } }');
    expect((await told(shared)).map((line) => line.split(':')[0])).toEqual([
      'targets.a.watermark',
      'targets.b.watermark',
      'targets.c.watermark',
    ]);
  });
});

describe('a mistake in a file', () => {
  it.each([
    // Numbers, and what stands for them.
    [target('{ watermark: 0 }'), 'targets.a.watermark: 0 is too small | write a number of at least 1'],
    [target('{ watermark: -5 }'), 'targets.a.watermark: -5 is too small | write a number of at least 1'],
    [
      target('{ watermark: 1.5 }'),
      'targets.a.watermark: 1.5 is a fraction, not a whole number | write a whole number, or one of: unlimited',
    ],
    [
      target('{ watermark: .inf }'),
      'targets.a.watermark: Infinity is no finite number, not a whole number | write a whole number, or one of: unlimited',
    ],
    [
      target('{ watermark: "100" }'),
      'targets.a.watermark: "100" is a text, not a number | write it without quotes',
    ],
    [
      target('{ watermark: unlimted }'),
      'targets.a.watermark: "unlimted" is not allowed here | did you mean "unlimited"? allowed: unlimited, or a whole number',
    ],
    [
      pair('', 'http: { port: "7070" }'),
      'http.port: "7070" is a text, not a number | write it without quotes',
    ],
    [
      target('{ idempotency: { dedupes: "true" } }'),
      'targets.a.idempotency.dedupes: "true" is a text, not true or false | write it without quotes',
    ],
    [
      pair('').replace('version: 1', 'version: "1"'),
      'version: "1" is a text, not a number | write it without quotes',
    ],
    [pair('').replace('version: 1\n', ''), 'version: is missing | add version: 1'],
    // Lists, groups and names.
    [
      pair('', 'targets: partner'),
      'targets: "partner" is a text, not a group of names | write names below it',
    ],
    [pair('', 'targets: [a]'), 'targets: is a list, not a group of names | write names below it'],
    [
      pair('', 'alerts: { action: chat }'),
      'alerts.action: "chat" is a text, not a list | write a list, such as [a, b]',
    ],
    [pair('').replace('[order_no]', '[1]'), 'key[0]: 1 is a number, not a text | put it in quotes'],
    [pair('').replace('[order_no]', '[null]'), 'key[0]: is empty | write a text'],
    [
      pair('').replace('  orders:', '  My Orders:'),
      'reconciliations.My Orders: is no valid name | did you mean "my-orders"?',
    ],
    [pair('repair: { duplicate: { target: a } }'), 'repair.duplicate: is not allowed here | allowed: report'],
    // Durations.
    [pair('relook: 90'), 'relook: 90 has no unit | write one, such as 90s or 90m'],
    [pair('relook: 5 minutes'), 'relook: "5 minutes" is no duration | write 250ms, 15m, 1h30m or PT15M'],
    [pair('maxAge: 1y'), 'maxAge: "1y" is no duration | write'],
    // Keys, at each level.
    [pair('', 'target: {}'), 'target: is no known key | did you mean "targets"?'],
    [pair('window: { lookbak: 1h }'), 'window.lookbak: is no known key | did you mean "lookback"?'],
    [
      pair('').replace('time: updated_at', 'tme: updated_at'),
      'source.tme: is no known key | did you mean "time"?',
    ],
    [
      pair('').replace('amount: decimal', 'amount: { type: decimal, tolerence: "1" }'),
      'compare.amount.tolerence: is no known key | did you mean "tolerance"?',
    ],
    [
      pair(answers('[{ stauts: [400], message: a }]'), TARGETS),
      `${FATAL}[0].stauts: is no known key | did you mean "status"?`,
    ],
    // The mistyped key is told once, not also as missing.
    [
      pair('', 'queue: { sentinel: { nme: m, hosts: ["h:1"] } }'),
      'queue.sentinel.nme: is no known key | did you mean "name"?',
    ],
    // One mistake inside a list is one problem.
    [
      pair('', 'queue: { sentinel: { name: m, hosts: [h] } }'),
      'queue.sentinel.hosts[0]: "h" is not host:port | write',
    ],
    [
      pair(answers('[{ status: 400 }, { status: [401] }]'), TARGETS),
      `${FATAL}[0].status: 400 is a number, not a list | write`,
    ],
    [pair(answers('[{}]'), TARGETS), `${FATAL}[0]: matches everything | give status, pointer or message`],
    // The rest.
    [pair('', 'timezone: "+02:00"'), 'timezone: "+02:00" is no IANA time zone | write one such as UTC'],
    [
      pair('schedule: "*/15 * * *"\nwindow: { lookback: 1h }'),
      'schedule: "*/15 * * *" has 4 of five fields | write',
    ],
    [pair('mode: check\nmode: check'), 'mode: is written twice | remove one; the first is in line'],
    [
      pair('repair: { missing: { target: partnr, action: { type: http, path: /x } } }', TARGETS),
      'repair.missing.target: "partnr" is no target | did you mean "partner"?',
    ],
    [
      pair('').replace('amount: decimal', 'amuont: decimal'),
      'compare.amuont: is no field of the source or the downstream | add amuont to source.fields',
    ],
  ])('is one problem, with what to write instead: %#', async (yaml, expected) => {
    const [only, ...more] = await told(yaml);
    expect(only).toContain(expected);
    expect(more).toEqual([]);
  });
});
