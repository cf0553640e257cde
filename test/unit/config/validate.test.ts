import { describe, expect, it } from 'vitest';
import { load, pair, problemsOf } from './in-file.ts';

const PARTNER =
  'targets: { partner: { url: "http://127.0.0.1:1" }, db: { url: "postgres://w@127.0.0.1/b" } }';
const HTTP_ACTION = '{ type: http, path: /orders }';

/** What is wrong with a reconciliation that has these lines more, as `path: message`. */
async function wrong(more: string, top = PARTNER): Promise<string[]> {
  return (await problemsOf(pair(more, top))).map(({ path, message }) =>
    `${path}: ${message}`.replace('reconciliations.orders.', ''),
  );
}

function repair(kind: string, rest: string, action = HTTP_ACTION): string {
  return `repair: { ${kind}: { target: partner, action: ${action}${rest === '' ? '' : `, ${rest}`} } }`;
}

/** A reconciliation whose downstream is an HTTP side with these calls. */
async function wrongHttp(lookup: string, list = '', key = '[order_no]'): Promise<string[]> {
  const names = key.slice(1, -1).split(', ');
  const problems = await problemsOf(`version: 1
${PARTNER}
reconciliations:
  orders:
    plan: lookups
    source: { type: postgres, url: 'postgres://h/a', table: t, time: at, fields: [amount] }
    downstream:
      type: http
      target: partner
      lookup: ${lookup}
      ${list === '' ? '' : `list: ${list}`}
      key: { ${names.map((name) => `${name}: /${name}`).join(', ')} }
      fields: { amount: /amount }
    key: ${key}
    compare: { amount: decimal }
`);
  return problems
    .filter((problem) => !problem.path.endsWith('.plan'))
    .map(({ path, message }) => `${path}: ${message}`.replace('reconciliations.orders.downstream.', ''));
}

describe('cron and zones', () => {
  it.each(['*/15 * * * *', '30 3 * * mon-fri', '0 0 1 jan,jul *', '0 12 29 2 *', '5,10 0-6/2 * * 7'])(
    'accepts %s',
    async (cron) => {
      const { config } = await load(pair(`schedule: "${cron}"\nwindow: { lookback: 1h }`));
      expect(config.reconciliations['orders']?.schedule?.cron).toBe(cron);
    },
  );

  it.each([
    ['   ', 'has 0 of five fields'],
    ['0 */5 * * * *', 'has 6 of five fields'],
    ['* * * *', 'has 4 of five fields'],
    ['@daily', 'is a nickname, not five fields'],
    ['61 * * * *', 'is no cron pattern'],
    ['H 3 * * *', 'uses "H", which is not part of a cron pattern here'],
    ['0 3 L * *', 'uses "L", which is not part of a cron pattern here'],
    ['0 3 ? * *', 'uses "?", which is not part of a cron pattern here'],
    ['0 3 * * 1#2', 'uses "1#2", which is not part of a cron pattern here'],
    ['0 3 30 2 *', 'is no cron pattern'],
    ['0 3 31 4,6,9,11 *', 'is no cron pattern'],
  ])('refuses "%s"', async (cron, message) => {
    expect(await wrong(`schedule: "${cron}"\nwindow: { lookback: 1h }`)).toEqual([
      `schedule: "${cron}" ${message}`,
    ]);
    expect(await wrong(`schedule: { cron: "${cron}" }\nwindow: { lookback: 1h }`)).toEqual([
      `schedule.cron: "${cron}" ${message}`,
    ]);
  });

  it.each(['Europe/Berlim', '+02:00', 'Nowhere', ''])('refuses the zone "%s"', async (zone) => {
    const more = `schedule: { cron: "0 3 * * *", timezone: "${zone}" }\nwindow: { day: yesterday }`;
    expect(await wrong(more)).toEqual([`schedule.timezone: "${zone}" is no IANA time zone`]);
  });
});

describe('windows', () => {
  it('need exactly one of lookback and day when there is a schedule', async () => {
    expect(await wrong('schedule: "0 3 * * *"')).toEqual([
      'window: does not say which records a scheduled run covers',
    ]);
    expect(await wrong('schedule: "0 3 * * *"\nwindow: { lookback: 1h, day: yesterday }')).toEqual([
      'window: has both lookback and day',
    ]);
    await load(pair());
  });

  it('settle at least as long as the longest transaction', async () => {
    expect(await wrong('window: { settle: 1m, maxTransactionAge: 5m }')).toEqual([
      'window.settle: is shorter than maxTransactionAge',
    ]);
  });

  it('are no time at all nowhere', async () => {
    expect(await wrong('window: { lookback: 0s, chunk: 0m }\nrecheck: { delay: 0s }\nrelook: 0s')).toEqual([
      'window.lookback: is no time at all',
      'window.chunk: is no time at all',
      'recheck.delay: is no time at all',
      'relook: is no time at all',
    ]);
  });
});

describe('MySQL sides', () => {
  const sides = (url: string, more: string) => `version: 1
reconciliations:
  orders:
    source: { type: mysql, url: '${url}', fields: [amount], ${more} }
    downstream: { type: postgres, url: 'postgres://h/b', table: t, fields: [amount] }
    key: [order_no]
    compare: { amount: decimal }
`;

  it('read a table or a query, by a time, at a mysql:// or mariadb:// address', async () => {
    for (const scheme of ['mysql', 'mariadb']) await load(sides(`${scheme}://h/a`, 'table: t, time: at'));
    const none = await problemsOf(sides('postgres://h/a', 'statementTimeout: 0s'));
    expect(none.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'reconciliations.orders.source: has no time, so the records of a window cannot be found',
      'reconciliations.orders.source: reads nothing',
      'reconciliations.orders.source.url: is no mysql:// or mariadb:// address',
      'reconciliations.orders.source.statementTimeout: is no time at all',
    ]);
  });
});

describe('PostgreSQL sides', () => {
  const sides = (source: string, more = '') => `version: 1
reconciliations:
  orders:
    source: { type: postgres, url: 'postgres://h/a', ${source} }
    downstream: { type: postgres, url: 'mysql://h/b', table: t, fields: [amount] }
    key: [order_no]
    compare: { amount: decimal }
${more}
`;

  it('read a table or a query, by a time, at a postgres:// address', async () => {
    const none = await problemsOf(sides('fields: [amount]'));
    expect(none.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'reconciliations.orders.source: has no time, so the records of a window cannot be found',
      'reconciliations.orders.source: reads nothing',
      'reconciliations.orders.downstream.url: is no postgres:// or postgresql:// address',
    ]);
    const both = await problemsOf(sides('table: t, query: select 1, time: at, fields: [amount]'));
    expect(both[0]?.message).toBe('has both a table and a query');
  });

  it('cover the key and name nothing else as key', async () => {
    const problems = await problemsOf(sides('table: t, time: at, fields: [amount], key: { orderno: no }'));
    expect(problems.map(({ path, message }) => `${path}: ${message}`)).toEqual([
      'reconciliations.orders.source.key: does not say what "order_no" is',
      'reconciliations.orders.source.key.orderno: names "orderno", which is no part of the key',
      'reconciliations.orders.downstream.url: is no postgres:// or postgresql:// address',
    ]);
  });

  it('need a time downstream only for a merge or to repair what is extra', async () => {
    const base = sides('table: t, time: at, fields: [amount]').replace('mysql', 'postgres');
    await load(base);
    expect((await problemsOf(`${base.trimEnd()}\n    plan: merge\n`))[0]?.message).toContain(
      'which plan: merge needs',
    );
  });
});

describe('HTTP sides', () => {
  it('say where one key goes', async () => {
    expect(await wrongHttp('{ path: /orders }')).toEqual([
      'lookup: asks for one key and does not say where it goes',
    ]);
    for (const good of [
      '{ path: "/orders/{key}" }',
      '{ path: "/orders/{key.order_no}" }',
      '{ path: /orders, query: { no: "{key}" } }',
      '{ path: /orders, method: POST, body: { find: { "no": ["{key.order_no}"] } } }',
    ])
      expect(await wrongHttp(good), good).toEqual([]);
  });

  it('say where each part of a key goes', async () => {
    expect(await wrongHttp('{ path: "/o/{key.shop}" }', '', '[shop, no]')).toEqual([
      'lookup: asks for one key and does not say where it goes',
    ]);
    expect(await wrongHttp('{ path: "/o/{key.shop}/{key.no}" }', '', '[shop, no]')).toEqual([]);
    expect(await wrongHttp('{ path: "/o/{shop}/{no}" }', '', '[shop, no]')).toEqual([]);
    expect(await wrongHttp('{ path: "/o/{key}" }', '', '[shop, no]')).toEqual([
      'lookup: asks for one key and does not say where it goes',
    ]);
    expect(await wrongHttp('{ path: "/o/{key.shoop}" }')).toEqual([
      'lookup: holds {key.shoop}, which is no part of the key',
    ]);
  });

  it('say where many keys go', async () => {
    expect(await wrongHttp('{ path: "/orders/{key}", batch: 50 }')).toEqual([
      'lookup: asks for 50 keys in one call and does not hold {keys}',
    ]);
    expect(await wrongHttp('{ path: /orders, query: { nos: "{keys}" }, batch: 50 }')).toEqual([]);
  });

  it('list a window, page by cursor or by number', async () => {
    const lookup = '{ path: "/o/{key}" }';
    expect(await wrongHttp(lookup, '{ path: "/o?since={from}" }')).toEqual(['list: does not hold {to}']);
    expect(await wrongHttp(lookup, '{ path: "/o?a={from}&b={to}" }')).toEqual([]);
    expect(await wrongHttp(lookup, '{ path: "/o?a={from}&b={to}", next: /next }')).toEqual([
      'list.next: needs {cursor}',
    ]);
    expect(await wrongHttp(lookup, '{ path: "/o?a={from}&b={to}&p={page}" }')).toEqual([
      'list: holds {page} and does not say how to page',
    ]);
    expect(await wrongHttp(lookup, '{ path: "/o?a={from}&b={to}&p={page}", firstPage: 1 }')).toEqual([]);
    expect(
      await wrongHttp(lookup, '{ path: "/o?a={from}&b={to}&p={page}&c={cursor}", firstPage: 1, next: /n }'),
    ).toEqual(['list: pages in two ways']);
  });

  it('need a target with an http address, and types for what is not text', async () => {
    const problems = await problemsOf(`version: 1
${PARTNER}
reconciliations:
  orders:
    source: { type: postgres, url: 'postgres://h/a', table: t, time: at, fields: [amount, name, kind] }
    downstream:
      type: http
      target: db
      lookup: { path: '/o/{key}' }
      key: { order_no: /no }
      fields: { amount: /amount, name: /name, kind: /kind }
    key: [order_no]
    compare: { amount: { tolerance: '0.01' }, name: { trim: true }, kind: { map: { a: b } } }
`);
    expect(
      problems.map(({ path, message }) => `${path}: ${message}`.replace('reconciliations.orders.', '')),
    ).toEqual(['downstream.target: "db" has no http(s):// address', 'compare.amount: has no type']);
  });
});

describe('compared fields', () => {
  it('are on both sides, and their options fit their type', async () => {
    const problems = await problemsOf(
      pair('').replace(
        '{ amount: decimal, status: text }',
        '{ amount: { type: text, tolerance: "1" }, stauts: text }',
      ),
    );
    expect(
      problems.map(({ path, message }) => `${path}: ${message}`.replace('reconciliations.orders.', '')),
    ).toEqual([
      'compare.amount.tolerance: says nothing about a field of type text',
      'compare.stauts: is no field of the source or the downstream',
    ]);
  });

  it('give the fields of a record that a repair, a date or a trace id may use', async () => {
    expect(await wrong('businessDate: bought_at\ntraceId: trace')).toEqual([
      'businessDate: "bought_at" is no field of the source',
      'traceId: "trace" is no field of the source',
    ]);
  });
});

describe('repairs', () => {
  it('name a target whose address suits the action', async () => {
    expect(await wrong(repair('missing', '').replace('partner', 'partnr'))).toEqual([
      'repair.missing.target: "partnr" is no target',
    ]);
    expect(await wrong(repair('missing', '').replace('partner', 'db'))).toEqual([
      'repair.missing.target: "db" has no http(s):// address, which an action of type http needs',
    ]);
    const sql =
      '{ type: sql, statement: "update t set a = 1 where no = :no", bind: { no: "{key.order_no}" } }';
    expect(await wrong(repair('missing', '', sql))).toEqual([
      'repair.missing.target: "partner" has no postgres:// address, which an action of type sql needs',
    ]);
    await load(pair(repair('missing', '', sql).replace('partner', 'db'), PARTNER));
  });

  it('ask for leave to delete', async () => {
    const remove = '{ type: http, method: DELETE, path: "/orders/{key.order_no}" }';
    expect(await wrong(repair('missing', '', remove))).toEqual(['repair.missing.action.method: deletes']);
    await load(pair(repair('missing', 'allowDelete: true', remove), PARTNER));
    for (const statement of [
      'delete from t where no = :no',
      '  -- old ones\n DELETE FROM t where no = :no',
      'with gone as (delete from t where no = :no returning 1) select 1',
      'truncate t /* :no */; ',
    ]) {
      const action = JSON.stringify({ type: 'sql', statement, bind: { no: '{key.order_no}' } });
      const said = await wrong(repair('missing', '', action).replace('partner', 'db'));
      expect(said, statement).toContain('repair.missing.action.statement: deletes');
    }
    const insert = JSON.stringify({
      type: 'sql',
      statement: "insert into t values (:no, 'delete from')",
      bind: { no: '{key.order_no}' },
    });
    await load(pair(repair('missing', '', insert).replace('partner', 'db'), PARTNER));
  });

  it('have a key that is the same at every attempt and different for every record', async () => {
    const template = async (text: string) => wrong(repair('missing', `idempotency: { template: "${text}" }`));
    const at = 'repair.missing.idempotency.template:';
    expect(await template('{businessKey}-{now}')).toEqual([
      `${at} uses {now}, which changes with the time of day`,
    ]);
    expect(await template('{businessKey}-{attempt}')).toEqual([
      `${at} uses {attempt}, which changes with each attempt`,
    ]);
    expect(await template('{businessKey}-{uuid}')).toEqual([`${at} uses {uuid}, which is random`]);
    expect(await template('{businessKey}-{runId}')).toEqual([`${at} uses {runId}, which is an internal id`]);
    expect(await template('{businessKey}-{shop}')).toEqual([`${at} uses {shop}, which is not known here`]);
    expect(await template('{businessKey}{operation}')).toEqual([
      `${at} has a placeholder that runs into what follows`,
    ]);
    expect(await template('{businessKey} {operation}')).toEqual([`${at} is not plain ASCII`]);
    expect(await template('{reconciliation}')).toEqual([`${at} is the same for every record`]);
    expect(await template('{businessKey}-{source.amont}')).toEqual([
      `${at} uses {source.amont}, which is no field of the source`,
    ]);
    expect(await template('{key.no}')).toEqual([`${at} uses {key.no}, which is no part of the key`]);
    await load(
      pair(repair('missing', 'idempotency: { template: "{key.order_no}:{source.status}" }'), PARTNER),
    );
  });

  it('take the key of the original call from a source field', async () => {
    expect(await wrong(repair('missing', 'idempotency: { from: request_id }'))).toEqual([
      'repair.missing.idempotency.from: "request_id" is no field of the source',
    ]);
  });

  it('send mapped fields of records that exist', async () => {
    const action =
      '{ type: http, path: "/o/{source.no}", headers: { X: "{downstream.amount}" }, body: [{ a: "{source.amount}" }] }';
    expect(await wrong(repair('missing', '', action))).toEqual([
      'repair.missing.action.path: uses {source.no}, which is no field of the source',
      'repair.missing.action.headers.X: uses {downstream.amount}, and there is no downstream record of a missing one',
    ]);
    const known =
      '{ type: http, path: "/o/{key}", body: { a: "{source.amount|number}", k: "{idempotencyKey}", x: "{}" } }';
    await load(pair(repair('missing', '', known), PARTNER));
    expect(await wrong(repair('missing', '', '{ type: http, path: "/o/{id}" }'))).toEqual([
      'repair.missing.action.path: uses {id}, which is not known here',
    ]);
    expect(await wrong(repair('extra', '', '{ type: http, path: "/o/{source.amount}" }'))).toEqual([
      'repair.extra.action.path: uses {source.amount}, and there is no source record of an extra one',
    ]);
  });

  it('bind what their statement uses', async () => {
    const action = JSON.stringify({
      type: 'sql',
      statement: "update t set a = :amount::numeric, b = ':not' where no = :nr and c = tags[1:2]",
      bind: { no: '{key.order_no}', amount: '{source.amount}' },
    });
    expect(await wrong(repair('missing', '', action).replace('partner', 'db'))).toEqual([
      'repair.missing.action.statement: uses :nr, which bind does not give',
      'repair.missing.action.bind.no: is not used by the statement',
    ]);
  });

  it('apply when compared fields hold values, the open one last', async () => {
    const one = (when: string) => `{ target: partner, ${when} action: ${HTTP_ACTION} }`;
    expect(
      await wrong(`repair: { mismatched: [${one('')}, ${one('when: { amuont: { source: ["1"] } },')}] }`),
    ).toEqual([
      'repair.mismatched[0]: has no when, so the repairs after it are never used',
      'repair.mismatched[1].when.amuont: is no compared field',
    ]);
  });

  it('wait for longer than a send may take to become visible', async () => {
    const slow = PARTNER.replace('"http://127.0.0.1:1"', '"http://127.0.0.1:1", appliesWithin: 20s');
    const lag = pair(repair('missing', 'verify: { within: 30s }'), slow).replace(
      "127.0.0.1/b', table",
      "127.0.0.1/b', readLag: 10s, table",
    );
    expect((await problemsOf(lag)).map((problem) => problem.message)).toEqual([
      'is 30s; a send may take 30s to become visible (the target’s appliesWithin and the downstream’s readLag)',
    ]);
    await load(lag.replace('within: 30s', 'within: 31s'));
    expect(await wrong(repair('missing', 'verify: { within: 1s, every: 2s }'))).toEqual([
      'repair.missing.verify.every: is longer than verify.within',
    ]);
  });
});

describe('targets, alerts and the queue', () => {
  it('have waits, time limits and addresses that fit together', async () => {
    expect(
      await wrong(
        '',
        'targets: { t: { url: "redis://h", maxSlow: 1s, retry: { wait: { base: 10s, cap: 5s } } } }',
      ),
    ).toEqual([
      'targets.t.url: is no https:// or http:// or postgres:// or postgresql:// address',
      'targets.t.maxSlow: is shorter than timeout.answer (5s), so a slow first attempt is never retried',
      'targets.t.retry.wait.base: is longer than the cap of 5s',
    ]);
    expect(await wrong('', 'store: { url: "mysql://h" }\nqueue: { url: "amqp://h" }')).toEqual([
      'store.url: is no postgres:// or postgresql:// address',
      'queue.url: is no redis:// or rediss:// or postgres:// or postgresql:// address',
    ]);
  });

  it('name channels that exist', async () => {
    const channels = 'channels: { chat: { type: slack, url: "https://h/x" } }';
    const problems = await problemsOf(
      pair('', `alerts: { ${channels}, warning: [chat], action: [chatt], link: "x" }`),
    );
    expect(problems.map(({ path, hint }) => `${path}: ${hint}`)).toEqual([
      'alerts.action[0]: did you mean "chat"?',
      'alerts.link: write https://host/…',
    ]);
  });
});
