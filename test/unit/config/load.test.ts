import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../../src/config/config-error.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { EXIT } from '../../../src/error.ts';
import { load, pair, problemsOf, refusal } from './in-file.ts';

const SHIPPED = fileURLToPath(new URL('../../../config/trueup.yaml', import.meta.url));

describe('the shipped config', () => {
  it('loads with nothing in the environment', async () => {
    const { config } = await loadConfig(SHIPPED, {});
    expect(Object.keys(config.reconciliations)).toEqual(['partner-orders', 'ledger-daily']);
    expect(config.store.url).toBeUndefined();
    expect(config.queue.url).toBeUndefined();
    expect(config.http.port).toBe(7070);
    for (const reconciliation of Object.values(config.reconciliations)) {
      expect(reconciliation.mode).toBe('check');
      expect(reconciliation.schedule).toBeDefined();
    }
    expect(config.reconciliations['partner-orders']?.window.lookback).toBe(3_600_000);
    expect(config.reconciliations['ledger-daily']?.window.day).toBe('yesterday');
  });

  it('takes addresses and ports from the environment', async () => {
    const env = { DATABASE_URL: 'postgres://u:swordfish@db/trueup', TRUEUP_PORT: '8123' };
    const { config, secrets } = await loadConfig(SHIPPED, env);
    expect(config.store.url?.reveal()).toBe(env.DATABASE_URL);
    expect(config.http.port).toBe(8123);
    expect(secrets).toContain('swordfish');
  });
});

const TEN_MISTAKES = `version: 1
timezone: Europe/Berlim
targets:
  partner:
    url: http://127.0.0.1:1
    watermrak: 50
reconciliations:
  payments:
    mode: compensat
    schedule: '@daily'
    window: { lookback: 1h, settle: 5 minuts }
    source: { type: postgres, table: payments, time: updated_at, fields: [amount, status] }
    downstream:
      type: http
      target: partnr
      lookup: { path: '/payments/{key}' }
      key: { payment_no: /no }
      fields: { amount: /amount, status: /state }
    key: [payment_no]
    compare: { amuont: decimal, status: txt }
    repair:
      missing:
        target: partner
        action: { type: http, path: /payments, body: { amount: '{source.amount}' } }
        idempotency: { template: '{businessKey}:{attempt}' }
`;

describe('a config with ten mistakes', () => {
  it('is refused with all of them at once, each with its place and what to write', async () => {
    const error = await refusal(TEN_MISTAKES);
    expect(error.code).toBe('TRU_CONFIG_INVALID');
    expect(error.exit).toBe(EXIT.usage);
    const said = error.problems.map(({ path, hint }) => `${path} -> ${hint}`);
    expect(said).toEqual([
      'timezone -> did you mean "Europe/Berlin"?',
      'targets.partner.watermrak -> did you mean "watermark"?',
      'reconciliations.payments.mode -> did you mean "compensate"? allowed: check, compensate',
      expect.stringMatching(/^reconciliations\.payments\.schedule -> write five fields/),
      'reconciliations.payments.window.settle -> write 250ms, 15m, 1h30m or PT15M',
      'reconciliations.payments.source.url -> add url: postgres:// address of a user that can only read',
      'reconciliations.payments.downstream.target -> did you mean "partner"?',
      'reconciliations.payments.compare.amuont -> add amuont to source.fields and downstream.fields (did you mean "amount"?)',
      expect.stringMatching(/^reconciliations\.payments\.compare\.status -> did you mean "text"\?/),
      expect.stringMatching(
        /^reconciliations\.payments\.repair\.missing\.idempotency\.template -> rule 6\.1 allows/,
      ),
    ]);
    expect(error.problems.every((problem) => problem.line !== null)).toBe(true);
    expect(error.message).toContain(
      'reconciliations.payments.window.settle: "5 minuts" is no duration (line 11',
    );
  });

  it('loads when the ten are corrected', async () => {
    const corrected = TEN_MISTAKES.replace('Berlim', 'Berlin')
      .replace('watermrak', 'watermark')
      .replace('compensat\n', 'compensate\n')
      .replace('@daily', '0 3 * * *')
      .replace('5 minuts', '5m')
      .replace('table: payments,', 'url: postgres://127.0.0.1/a, table: payments,')
      .replace('partnr', 'partner')
      .replace('amuont', 'amount')
      .replace('txt', 'text')
      .replace('{attempt}', '{businessDate}');
    expect((await load(corrected)).config.targets['partner']?.watermark).toBe(50);
  });
});

describe('loading', () => {
  it('says where YAML cannot be read, without repeating the text', async () => {
    const [problem, ...more] = await problemsOf(
      'version: 1\nstore: {url: "postgres://u:hunter2-hunter2@h/d"\nlog: x',
    );
    expect(more).toEqual([]);
    expect(problem).toMatchObject({
      path: '',
      line: 3,
      message: expect.stringMatching(/^is not valid YAML/),
    });
    expect(JSON.stringify(problem)).not.toContain('hunter2');
  });

  it('refuses a key that is written twice and names the first line', async () => {
    const problems = await problemsOf(pair('', 'timezone: UTC\ntimezone: Europe/Berlin'));
    expect(problems).toEqual([
      {
        path: 'timezone',
        message: 'is written twice',
        hint: 'remove one; the first is in line 2',
        line: 3,
        column: 1,
      },
    ]);
  });

  it('refuses a number that would lose digits', async () => {
    const problems = await problemsOf(pair('', 'http: { port: 90071992547409931 }'));
    expect(problems.map((problem) => problem.hint).join()).toContain('put it in quotes');
  });

  it('refuses a file that is missing, empty or a directory', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'trueup-config-'));
    try {
      await expect(loadConfig(join(directory, 'none.yaml'), {})).rejects.toThrow(
        /does not exist[\s\S]*trueup init/,
      );
      await expect(loadConfig(directory, {})).rejects.toThrow(/cannot be read \(EISDIR\)/);
    } finally {
      await rm(directory, { recursive: true });
    }
    expect((await refusal('# nothing yet\n')).message).toContain('is empty');
    expect((await refusal('just words')).problems[0]?.message).toBe(
      '"just words" is a text, not a group of keys',
    );
  });

  it('refuses an alias without its anchor', async () => {
    expect((await refusal('version: *one')).problems[0]?.hint).toContain('anchor');
  });

  it('reads anchors and merge keys', async () => {
    const { config } = await load(
      pair(
        '',
        'targets:\n  a: &base { url: "http://127.0.0.1:1", watermark: 7 }\n  b: { <<: *base, reads: 5 }',
      ),
    );
    expect(config.targets['b']).toMatchObject({ watermark: 7, reads: 5 });
  });

  it('takes a key with nothing after it as left out, but not an entry that a person named', async () => {
    const { config } = await load(pair('', 'alerts:\n  channels:\n    # chat: ...\nstore:\n  url:'));
    expect(config.alerts.channels).toEqual({});
    expect(config.store.url).toBeUndefined();
    const problems = await problemsOf('version: 1\nreconciliations:\n  payments:\n');
    expect(problems).toMatchObject([{ path: 'reconciliations.payments', message: 'is empty' }]);
  });

  it('reads numbers and booleans from the environment where only those are allowed', async () => {
    const target = `{ url: "http://127.0.0.1:1", watermark: "\${env:N}", idempotency: { dedupes: "\${env:B}" } }`;
    const yaml = pair('', `targets: { t: ${target} }`);
    const { config } = await load(yaml, { N: '42', B: 'true' });
    expect(config.targets['t']).toMatchObject({ watermark: 42, idempotency: { dedupes: true } });
    const problems = await problemsOf(yaml, { N: 'lots', B: 'true' });
    expect(problems).toMatchObject([
      { path: 'targets.t.watermark', message: `the value of \${env:N} is not allowed here` },
    ]);
  });

  it('reads a secret from a file beside the config', async () => {
    const { config, secrets } = await load(
      pair(
        '',
        `targets:\n  t: { url: "http://127.0.0.1:1", headers: { Authorization: "Bearer \${file:token}" } }`,
      ),
      {},
      { token: 'correct-horse\n' },
    );
    expect(config.targets['t']?.headers['Authorization']?.reveal()).toBe('Bearer correct-horse');
    expect(secrets).toContain('correct-horse');
  });

  it('tells which variable or file is missing, beside everything else', async () => {
    const problems = await problemsOf(
      pair('plann: auto', `store: { url: "\${env:NO_SUCH}" }\nqueue: { url: "\${file:no-such}" }`),
    );
    expect(problems.map(({ path, message }) => [path, message])).toEqual([
      ['store.url', 'needs the environment variable NO_SUCH, which is not set'],
      ['queue.url', 'needs the file no-such, which cannot be read (ENOENT)'],
      ['reconciliations.orders.plann', 'is no known key'],
    ]);
  });

  it('goes on checking inside a part whose type or a required key is missing', async () => {
    const problems = await problemsOf(`version: 1
reconciliations:
  orders:
    source: { table: orders, fields: [amount] }
    compare: { amount: decimal }
    window: { settle: 1m, maxTransactionAge: 2m }
`);
    expect(problems.map((problem) => `${problem.path} ${problem.message}`).sort()).toEqual([
      'reconciliations.orders.downstream is missing',
      'reconciliations.orders.key is missing',
      'reconciliations.orders.source.type is missing',
      'reconciliations.orders.window.settle is shorter than maxTransactionAge',
    ]);
  });
});

describe('what is stored of a config', () => {
  const withPassword = (password: string) =>
    pair('', `store: { url: "postgres://app:${password}@db.example/trueup" }`);

  it('keeps the host and not the password, and has the same digest whatever the password is', async () => {
    const first = await load(withPassword('first-password'));
    const second = await load(withPassword('other-password'));
    expect(JSON.stringify(first.document)).toContain('postgres://app:[secret]@db.example/trueup');
    expect(JSON.stringify(first.document)).not.toContain('first-password');
    expect(first.digest).toBe(second.digest);
    expect(first.secrets).toContain('first-password');
  });

  it('keeps what is interpolated as it was written', async () => {
    const yaml = pair('', `store: { url: "\${env:DB}" }`);
    const first = await load(yaml, { DB: 'postgres://a:one-password@h/d' });
    const second = await load(yaml, { DB: 'postgres://a:two-password@h/d' });
    expect(first.document).toMatchObject({ store: { url: `\${env:DB}` } });
    expect(first.digest).toBe(second.digest);
  });

  it('has another digest when a setting changes, and the same when only the order or a comment does', async () => {
    const one = await load(pair('mode: check\nplan: auto'));
    expect((await load(pair('plan: auto\n# why\nmode: check'))).digest).toBe(one.digest);
    expect((await load(pair('mode: check\nplan: merge'))).digest).not.toBe(one.digest);
  });

  it('masks the whole address of an alert channel', async () => {
    const url = 'https://hooks.example/T0/B0/short';
    const { document, secrets } = await load(
      pair('', `alerts: { channels: { chat: { type: slack, url: "${url}" } } }`),
    );
    expect(JSON.stringify(document)).not.toContain(url);
    expect(secrets).toContain(url);
  });
});

describe('secrets in the environment', () => {
  const SECRET = 'Zq8-planted/secret+value';

  it('never reach a problem, wherever they were put', async () => {
    const places: readonly [string, string][] = [
      ['', `timezone: "\${env:S}"`],
      ['', `store: { url: "\${env:S}" }`],
      ['', `log: { level: "\${env:S}" }`],
      ['', `http: { port: "\${env:S}" }`],
      ['', `targets: { t: { url: "\${env:S}", maxSlow: "\${env:S}" } }`],
      ['', `targets: { t: { headers: "\${env:S}" } }`],
      ['', `alerts: { action: ["\${env:S}"], link: "\${env:S}" }`],
      ['', `alerts: { channels: { c: { type: "\${env:S}", url: "\${env:S}" } } }`],
      [`schedule: "\${env:S}"`, ''],
      [`plan: "\${env:S}"`, ''],
      [`businessDate: "\${env:S}"`, ''],
      [`window: { lookback: "\${env:S}" }`, ''],
      [`repair: "\${env:S}"`, ''],
      [`repair: { missing: "\${env:S}" }`, ''],
      [
        `repair: { missing: { target: "\${env:S}", action: { type: http, path: "/{source.\${env:S}}" } } }`,
        '',
      ],
      [`repair: { missing: { target: t, action: { type: sql, statement: "delete \${env:S}" } } }`, ''],
    ];
    for (const [more, top] of places) {
      const error = await refusal(pair(more, top), { S: SECRET });
      expect(error).toBeInstanceOf(ConfigError);
      expect(JSON.stringify([error.message, error.hint, error.problems]), `${more}${top}`).not.toContain(
        'planted',
      );
    }
  });

  it('are not guessed at by a hint', async () => {
    const [problem] = await problemsOf(pair(`mode: "\${env:S}"`), { S: 'compensat' });
    expect(problem).toMatchObject({
      message: `the value of \${env:S} is not allowed here`,
      hint: 'allowed: check, compensate',
    });
  });

  it('are not shown when they were written into the file either', async () => {
    const error = await refusal(pair('', 'targets: { t: { url: "ftp://u:planted-password@h/d" } }'));
    expect(error.problems).toMatchObject([{ path: 'targets.t.url' }]);
    expect(error.message).not.toContain('planted');
  });
});
