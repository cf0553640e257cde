import { expect, test } from 'vitest';
import { MINUTE } from '../../../src/compensate/gate/watermark.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { claimQueued } from '../../../src/store/compensations.ts';
import type { Db } from '../../../src/store/database.ts';
import { dropSlot, grantSend } from '../../../src/store/grants.ts';
import { insertAttempt, insertCompensation, insertDiff } from './rows.ts';
import { storeForFile } from './store.ts';

const store = storeForFile();
const { warehouse: target } = configSchema.parse({
  version: 1,
  targets: { warehouse: { watermark: 'unlimited' } },
  reconciliations: {},
}).targets;

async function grantAndDrop(db: Db, id: string): Promise<void> {
  // A gate that was never used lets its first caller wait.
  await db('gate').insert({ gate: id, purpose: 'send', slots: { lastSlotMs: 0 } });
  const claimed = await claimQueued(db, id, 1, 'w1', 30_000);
  if (claimed === null || target === undefined) throw new Error('nothing to grant');
  const answer = await grantSend(db, {
    compensation: claimed,
    gate: id,
    target,
    worker: 'w1',
    timing: MINUTE,
    leaseMarginMs: 5_000,
  });
  if (answer.kind !== 'granted') throw new Error(`the gate said ${answer.kind}`);
  expect((await sentAt(db, id)).last_sent_at).not.toBeNull();
  await dropSlot(db, claimed, answer);
}

function sentAt(
  db: Db,
  id: string,
): Promise<{ state: string; first_sent_at: unknown; last_sent_at: unknown }> {
  return db('compensation').where({ id }).first('state', 'first_sent_at', 'last_sent_at');
}

test('a slot that is dropped leaves no trace of a send that never was', async () => {
  const { db } = store;
  const diff = await insertDiff(db, 'never-sent');
  const id = await insertCompensation(db, 'never-sent', diff, { state: 'queued', ring: 1 });
  await grantAndDrop(db, id);
  expect(await sentAt(db, id)).toEqual({ state: 'ready', first_sent_at: null, last_sent_at: null });
});

test('a slot that is dropped does not make an earlier, ambiguous send look younger', async () => {
  const { db } = store;
  const earlier = '2026-11-30T10:00:00.000000Z';
  const diff = await insertDiff(db, 'sent-before', { business_key: '["A-2"]' });
  const id = await insertCompensation(db, 'sent-before', diff, {
    state: 'queued',
    ring: 1,
    business_key: '["A-2"]',
    attempt_number: 1,
    last_unknown: true,
    first_sent_at: earlier,
    last_sent_at: earlier,
  });
  await insertAttempt(db, id, 1, { slot_at: earlier, ended_at: earlier, outcome: 'unknown' });
  await grantAndDrop(db, id);
  expect(await sentAt(db, id)).toEqual({ state: 'ready', first_sent_at: earlier, last_sent_at: earlier });
});
