import { beforeEach, describe, expect, test } from 'vitest';
import { listAudit, recordAudit } from '../../../src/store/audit.ts';
import {
  activateRevision,
  activeRevision,
  readRevision,
  saveRevision,
} from '../../../src/store/config-revisions.ts';
import { claimIdentity, readMeta, releaseReplay } from '../../../src/store/meta.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();

describe('the identity of the store', () => {
  beforeEach(async () => {
    await store.db('meta').update({ system_identifier: null, replay_held: null });
  });

  test('its first start remembers the server and holds nothing', async () => {
    expect(await claimIdentity(store.db)).toEqual({ changed: false });
    const meta = await readMeta(store.db);
    expect(meta.systemIdentifier).toMatch(/^\d+$/);
    expect(meta.replayHeld).toBeNull();
    expect(await claimIdentity(store.db)).toEqual({ changed: false });
  });

  test('on another server all replay is held until a person releases it with a reason', async () => {
    await store.db('meta').update({ system_identifier: '7000000000000000000' });
    expect(await claimIdentity(store.db)).toEqual({ changed: true });
    const held = await readMeta(store.db);
    expect(held.replayHeld).toContain('moved from server 7000000000000000000');
    expect(held.systemIdentifier).not.toBe('7000000000000000000');

    expect(await claimIdentity(store.db)).toEqual({ changed: false });
    expect((await readMeta(store.db)).replayHeld).toBe(held.replayHeld);

    expect(await releaseReplay(store.db, 'compared with the target', 'ann', 'cli')).toBe(true);
    expect((await readMeta(store.db)).replayHeld).toBeNull();
    expect(await releaseReplay(store.db, 'again', 'ann', 'cli')).toBe(false);

    const [released, heldEntry] = await listAudit(store.db, { subject: 'store' }, { limit: 2 });
    expect(released).toMatchObject({
      actor: 'ann',
      action: 'release-replay',
      reason: 'compared with the target',
      before: { replayHeld: held.replayHeld },
      after: { replayHeld: null },
    });
    expect(heldEntry).toMatchObject({ action: 'hold-replay' });
  });

  test('two starters on a restored store hold it once', async () => {
    await store.db('meta').update({ system_identifier: '7000000000000000001' });
    const claims = await Promise.all([claimIdentity(store.db), claimIdentity(store.db)]);
    expect(claims.filter(({ changed }) => changed)).toHaveLength(1);
  });

  test('the digest key does not show itself', async () => {
    const meta = await readMeta(store.db);
    expect(meta.digestKey.reveal()).toHaveLength(64);
    expect(JSON.stringify(meta)).not.toContain(meta.digestKey.reveal());
  });
});

describe('configuration revisions', () => {
  const save = (digest: string) => saveRevision(store.db, { digest, document: { digest }, actor: 'ann' });

  test('the same configuration keeps its number, also for two that store it at once', async () => {
    const [one, two] = await Promise.all([save('same'), save('same')]);
    expect(two).toBe(one);
    expect(await save('same')).toBe(one);
    expect(await save('other')).not.toBe(one);
  });

  test('one is active, and activating another is on record', async () => {
    const first = await save('first');
    const second = await save('second');
    expect(await activateRevision(store.db, first, 'ann', 'cli')).toBe(true);
    expect(await activateRevision(store.db, first, 'ann', 'cli')).toBe(false);
    expect(await activateRevision(store.db, second, 'bob', 'api')).toBe(true);
    expect((await readMeta(store.db)).activeRevision).toBe(second);
    expect(await activeRevision(store.db)).toMatchObject({
      revision: second,
      digest: 'second',
      document: { digest: 'second' },
      createdBy: 'ann',
      activatedAt: expect.stringMatching(/Z$/),
    });
    const [entry] = await listAudit(store.db, { action: 'activate-config' }, { limit: 1 });
    expect(entry).toMatchObject({ actor: 'bob', before: { revision: first }, after: { revision: second } });
  });

  test('one that does not exist is not activated', async () => {
    const before = await readMeta(store.db);
    await expect(activateRevision(store.db, 999_999, 'ann', 'cli')).rejects.toMatchObject({
      code: 'TRU_NO_REVISION',
    });
    expect((await readMeta(store.db)).activeRevision).toBe(before.activeRevision);
    expect(await readRevision(store.db, 999_999)).toBeNull();
  });

  test('a document with characters that jsonb cannot hold is stored with visible replacements', async () => {
    const document = { text: 'nul \u0000 half \ud800 pair \u{1f600} slash \\u0000', 'k\u0000': 1 };
    const revision = await saveRevision(store.db, { digest: 'odd', document, actor: 'ann' });
    expect((await readRevision(store.db, revision))?.document).toEqual({
      text: 'nul \ufffd half \ufffd pair \u{1f600} slash \\u0000',
      'k\ufffd': 1,
    });
  });
});

describe('the audit', () => {
  test('is listed newest first, page by page, under filters', async () => {
    const entry = { origin: 'cli', action: 'dismiss', reason: 'r', before: null, after: [1] };
    const ids: string[] = [];
    for (const subject of ['diff 1', 'diff 2', 'diff 3'])
      ids.unshift(await recordAudit(store.db, { ...entry, actor: 'pager', subject }));
    const first = await listAudit(store.db, { actor: 'pager' }, { limit: 2 });
    expect(first.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    const rest = await listAudit(store.db, { actor: 'pager' }, { limit: 2, before: first[1]?.id ?? '' });
    expect(rest.map(({ id, after }) => [id, after])).toEqual([[ids[2], [1]]]);
    await expect(listAudit(store.db, {}, { limit: 1, before: 'x' })).rejects.toMatchObject({
      code: 'TRU_NO_ID',
    });
  });
});
