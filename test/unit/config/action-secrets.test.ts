// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the config's own interpolation
import { describe, expect, it } from 'vitest';
import { load, pair, problemsOf } from './in-file.ts';

const TARGETS = `targets:
  partner: { url: "http://127.0.0.1:1", headers: { Authorization: "Bearer \${env:TOKEN}" } }
  db: { url: "postgres://w:\${env:PASSWORD}@127.0.0.1/b" }`;
const ENV = { TOKEN: 'planted-token-4711', PASSWORD: 'planted-password-0815', SHOP_ID: 'shop-4711' };

const repair = (action: string, target = 'partner') =>
  `mode: compensate\nrepair: { missing: { target: ${target}, action: ${action} } }`;
const problems = (action: string, target?: string, env: Record<string, string> = ENV) =>
  problemsOf(pair(repair(action, target), TARGETS), env);

describe('a secret in an action', () => {
  it.each([
    ['headers: { X-Auth: "${env:TOKEN}" }', 'headers.X-Auth', 'targets.partner.headers'],
    ['headers: { X-Auth: "Bearer ${file:/run/token}" }', 'headers.X-Auth', 'targets.partner.headers'],
    ['query: { t: "${env:TOKEN}" }', 'query.t', 'targets.partner.url'],
    ['body: { a: [{ b: "x ${env:TOKEN:-none}" }] }', 'body.a[0].b', 'module action'],
    ['body: "t=${env:TOKEN}"', 'body', 'module action'],
  ])('is refused in { %s }', async (rest, place, where) => {
    const [problem, ...more] = await problems(`{ type: http, path: /orders, ${rest} }`);
    expect(more).toEqual([]);
    expect(problem?.path).toBe(`reconciliations.orders.repair.missing.action.${place}`);
    expect(problem?.message).toMatch(/^may not hold \$\{(env|file):.*is stored with every attempt$/);
    expect(problem?.hint).toContain(where);
    expect(problem?.hint).toContain('${plain:');
    expect(JSON.stringify(problem)).not.toContain('planted');
  });

  it('is refused in its path, in a statement, in bound values, in a module and in a list of repairs', async () => {
    const [path] = await problems('{ type: http, path: "/hooks/${env:TOKEN}" }');
    expect(path?.path).toMatch(/action\.path$/);
    const sql = await problems(
      '{ type: sql, statement: "select f(:a, \'${env:TOKEN}\')", bind: { a: "${env:TOKEN}" } }',
      'db',
    );
    expect(sql.map((one) => one.path.replace(/.*action\./, ''))).toEqual(['statement', 'bind.a']);
    expect(sql[0]?.hint).toContain('targets.db.url');
    const [input] = await problems('{ type: module, module: ./m.mjs, input: { token: "${env:TOKEN}" } }');
    expect(input?.hint).toContain('the module reads it itself');
    const list = await problemsOf(
      pair(
        'repair: { mismatched: [{ target: partner, action: { type: http, path: "/x/${env:TOKEN}" } }] }',
        TARGETS,
      ),
      ENV,
    );
    expect(list.map((one) => one.path)).toEqual(['reconciliations.orders.repair.mismatched[0].action.path']);
  });

  it('is refused when it was declared plain, or written out, and is a secret elsewhere in the file', async () => {
    const [declared] = await problems('{ type: http, path: /orders, body: { t: "${plain:TOKEN}" } }');
    expect(declared?.message).toContain('repeats a secret of this config');
    const [written] = await problems(`{ type: http, path: /orders, body: { t: "${ENV.PASSWORD}" } }`);
    expect(written?.message).toContain('repeats a secret of this config');
    expect(written?.message).not.toContain(ENV.PASSWORD);
  });

  it('is refused as a written-out credential in a header', async () => {
    const [problem] = await problems(
      '{ type: http, path: /orders, headers: { Authorization: "Bearer abc" } }',
    );
    expect(problem?.message).toContain('is a credential');
    expect(problem?.hint).toContain('targets.partner.headers');
  });
});

describe('what is no secret in an action', () => {
  it('may come from the environment as ${plain:NAME}, and is not hidden', async () => {
    const action =
      '{ type: http, path: "/shops/${plain:SHOP_ID}/orders", body: { shop: "${plain:SHOP_ID}", zone: "${plain:ZONE:-eu}" }, headers: { X-Token-Of: "{key.order_no}" } }';
    const { config, secrets } = await load(pair(repair(action), TARGETS), ENV);
    expect(config.reconciliations['orders']?.repair.missing).toMatchObject({
      action: { path: '/shops/shop-4711/orders', body: { shop: 'shop-4711', zone: 'eu' } },
    });
    expect(secrets).not.toContain('shop-4711');
    expect(secrets).toEqual(expect.arrayContaining([ENV.TOKEN, ENV.PASSWORD]));
  });

  it('may be a literal ${', async () => {
    const { config } = await load(
      pair(repair('{ type: http, path: /orders, body: { a: "$${env:TOKEN}" } }'), TARGETS),
      ENV,
    );
    expect(config.reconciliations['orders']?.repair.missing).toMatchObject({
      action: { body: { a: '${env:TOKEN}' } },
    });
  });

  it('still has to be set', async () => {
    const [problem] = await problems('{ type: http, path: "/${plain:NOT_SET}" }');
    expect(problem?.message).toContain('needs the environment variable NOT_SET');
    expect(problem?.hint).toContain('${plain:NOT_SET:-default}');
  });
});

it('lets an error name a host that came from the environment, and not the password beside it', async () => {
  const { secrets } = await load(
    pair('', 'store: { url: "postgres://app:${env:PASSWORD}@${env:DB_HOST}:5432/trueup" }'),
    { ...ENV, DB_HOST: 'database.internal' },
  );
  expect(secrets).toContain(ENV.PASSWORD);
  expect(secrets).not.toContain('database.internal');
});
