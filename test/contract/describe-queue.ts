import { DateTime } from 'luxon';
import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '../../src/config/secret.ts';
import { createBackend, type QueueBackend } from '../../src/jobs/backend.ts';
import type { Tick } from '../../src/jobs/bull.ts';
import { nextSlot } from '../../src/jobs/cron.ts';
import { until } from '../support/wait.ts';

/** The next day in March whose clock is put forward: the last Sunday. */
function springDay(zone: string): DateTime {
  const now = DateTime.now().setZone(zone);
  const [next] = [now.year, now.year + 1]
    .map((year) => DateTime.fromObject({ year, month: 3, day: 31 }, { zone }))
    .map((last) => last.minus({ days: last.weekday % 7 }))
    .filter((sunday) => sunday > now);
  if (next === undefined) throw new Error('there is a spring every year');
  return next;
}

/** What trueup needs of a queue, whatever carries it. */
export function describeQueue(
  name: string,
  url: () => Promise<{ url: string; drop(): Promise<void> }>,
): void {
  describe(`queue on ${name}`, () => {
    const opened: QueueBackend[] = [];
    const drops: (() => Promise<void>)[] = [];

    afterEach(async () => {
      for (const backend of opened.splice(0)) await backend.close();
      for (const drop of drops.splice(0)) await drop();
    });

    async function place(): Promise<{ open(namespace?: string): Promise<QueueBackend> }> {
      const server = await url();
      drops.push(server.drop);
      const own = `t${Math.random().toString(36).slice(2, 10)}`;
      return {
        open: async (namespace = own) => {
          const backend = createBackend({ url: new Secret(server.url), options: {} }, namespace, {
            onError: () => {},
          });
          await backend.open();
          opened.push(backend);
          return backend;
        },
      };
    }

    it('carries a job to a consumer with its data', async () => {
      const backend = await (await place()).open();
      const seen: unknown[] = [];
      const consumer = backend.consume('sends', 2, async (data) => {
        seen.push(data);
      });
      await backend.add('sends', [{ id: 'c1-1', data: { id: '1', ring: 1 } }]);
      await until('the job is seen', async () => seen.length === 1);
      expect(seen).toEqual([{ id: '1', ring: 1 }]);
      await consumer.close(5000);
    });

    it('runs a job once when it is added twice with one id', async () => {
      const backend = await (await place()).open();
      const seen: unknown[] = [];
      await backend.add('sends', [{ id: 'c1-1', data: { id: '1', ring: 1 } }]);
      await backend.add('sends', [{ id: 'c1-1', data: { id: '1', ring: 1 } }]);
      await backend.add('sends', [{ id: 'last', data: { id: '2', ring: 1 } }]);
      const consumer = backend.consume('sends', 1, async (data) => {
        seen.push(data['id']);
      });
      await until('the last job is seen', async () => seen.includes('2'));
      expect(seen).toEqual(['1', '2']);
      await consumer.close(5000);
    });

    it('takes an id again once its job has ended, so that nothing is blocked by a finished one', async () => {
      const backend = await (await place()).open();
      let count = 0;
      const consumer = backend.consume('sends', 1, async () => {
        count += 1;
      });
      await backend.add('sends', [{ id: 'c7-1', data: { id: '7', ring: 1 } }]);
      await until('it ran', async () => count === 1);
      await until('it runs again', async () => {
        await backend.add('sends', [{ id: 'c7-1', data: { id: '7', ring: 1 } }]);
        return count >= 2;
      });
      await consumer.close(5000);
    });

    it('does not run a failed job again', async () => {
      const backend = await (await place()).open();
      const seen: string[] = [];
      const consumer = backend.consume('sends', 1, async (data) => {
        seen.push(String(data['id']));
        if (data['id'] === 'bad') throw new Error('no');
      });
      await backend.add('sends', [{ id: 'bad', data: { id: 'bad' } }]);
      await backend.add('sends', [{ id: 'good', data: { id: 'good' } }]);
      await until('the good job is seen', async () => seen.includes('good'));
      expect(seen).toEqual(['bad', 'good']);
      await consumer.close(5000);
    });

    it('keeps queues apart: a full one delays no other', async () => {
      const backend = await (await place()).open();
      let release: () => void = () => {};
      const hanging = new Promise<void>((resolve) => {
        release = resolve;
      });
      let ran = false;
      const retries = backend.consume('retries', 1, () => hanging);
      const runs = backend.consume('runs', 1, async () => {
        ran = true;
      });
      await backend.add('retries', [{ id: 'h', data: {} }]);
      await backend.add('runs', [{ id: 'r', data: {} }]);
      await until('the run ran', async () => ran);
      release();
      await retries.close(5000);
      await runs.close(5000);
    });

    it('keeps namespaces apart', async () => {
      const server = await place();
      const [one, other] = [await server.open('nsone'), await server.open('nsother')];
      const seen: string[] = [];
      const mine = one.consume('sends', 1, async () => {
        seen.push('one');
      });
      const theirs = other.consume('sends', 1, async () => {
        seen.push('other');
      });
      await other.add('sends', [{ id: 'x', data: {} }]);
      await until('a job was seen', async () => seen.length > 0);
      expect(seen).toEqual(['other']);
      await mine.close(5000);
      await theirs.close(5000);
    });

    it('waits for the job in hand when it closes, and lets go of it after the bound', async () => {
      const backend = await (await place()).open();
      let started = 0;
      let ended = 0;
      let release: () => void = () => {};
      const hanging = new Promise<void>((resolve) => {
        release = resolve;
      });
      const consumer = backend.consume('sends', 1, async () => {
        started += 1;
        await hanging;
        ended += 1;
      });
      await backend.add('sends', [{ id: 'a', data: {} }]);
      await until('the job has started', async () => started === 1);
      await consumer.close(50);
      expect(ended).toBe(0);
      release();
      await until('the abandoned job has ended', async () => ended === 1);
    });

    const tick = (name: string, cron: string): Tick => ({
      name,
      zone: 'UTC',
      schedule: { cron, gap: 'run-after', overlap: 'first', missed: 'collapse', overlapping: 'skip' },
    });

    it('keeps one scheduler per reconciliation, follows a changed pattern and removes unknown ones', async () => {
      const backend = await (await place()).open();
      await backend.keepTicks([tick('orders', '0 4 * * *'), tick('old', '0 5 * * *')]);
      await backend.keepTicks([tick('orders', '30 6 * * *')]);
      const ticks = await backend.listTicks();
      expect(ticks.map((found) => found.name)).toEqual(['orders']);
      expect(new Date(ticks[0]?.next ?? 0).toISOString()).toMatch(/T06:30:00/);
    });

    it('asks the rules of the moment for the next time', async () => {
      const backend = await (await place()).open();
      const zone = 'Europe/Berlin';
      const day = springDay(zone);
      // 02:30 does not exist on that day: one rule runs after the gap, the other a year later.
      const { schedule } = tick('orders', `30 2 ${day.day} ${day.month} *`);
      for (const gap of ['run-after', 'skip', 'run-after'] as const) {
        await backend.keepTicks([{ name: 'orders', zone, schedule: { ...schedule, gap } }]);
        const [found] = await backend.listTicks();
        const wanted = nextSlot({ ...schedule, gap }, zone, Date.now())?.nominal ?? '';
        expect(new Date(found?.next ?? 0).getTime()).toBe(Date.parse(wanted));
      }
    });

    it('makes one scheduler when several nodes start at once', async () => {
      const server = await place();
      const nodes = [await server.open('many'), await server.open('many'), await server.open('many')];
      for (let round = 0; round < 5; round++) {
        await Promise.all(
          nodes.map((node, index) => node.keepTicks([tick('orders', `${round + index} 4 * * *`)])),
        );
      }
      await Promise.all(nodes.map((node) => node.keepTicks([tick('orders', '15 4 * * *')])));
      const ticks = (await nodes[0]?.listTicks()) ?? [];
      expect(ticks.map((found) => found.name)).toEqual(['orders']);
      expect(new Date(ticks[0]?.next ?? 0).toISOString()).toMatch(/T04:15:00/);
    });

    it('says that it is alive', async () => {
      expect(await (await (await place()).open()).alive()).toBe(true);
    });
  });
}
