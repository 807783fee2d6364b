import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { PartitionPlan } from '../../../src/model/task.js';
import { Slots } from '../../../src/run/pacing/places.js';
import { plan, queueOf, task } from '../../helpers/run-queue.js';

const plansOf = (count: number): PartitionPlan[] =>
  Array.from({ length: count }, (_, label) => plan(String(label), [task(String(label))]));
const MONTH = plan(
  '2024-01',
  Array.from({ length: 31 }, (_, day) => task(String(day))),
);

describe('RunQueue bounds the number of living tasks', () => {
  it('keeps a few times the concurrency alive, were the plan ten million objects long', async () => {
    const concurrency = 8;
    const keys: string[] = [];
    let planned = 0;
    let done = 0;
    let most = 0;
    let inFlight = 0;
    let mostInFlight = 0;
    const { queue, writes } = queueOf(
      {
        download: async (_, { object }) => {
          inFlight += 1;
          mostInFlight = Math.max(mostInFlight, inFlight);
          await turn();
          inFlight -= 1;
          return object.key;
        },
        write: async (written, received) => {
          await turn();
          keys.push(...received);
          done += written.tasks.length;
          return new Map();
        },
      },
      concurrency,
    );
    async function* manyPlans(): AsyncGenerator<PartitionPlan> {
      for (let label = 0; label < 10_000; label += 1) {
        await Promise.resolve();
        planned += 1;
        most = Math.max(most, planned - done);
        yield plan(String(label), [task(String(label))]);
      }
    }
    await queue.run(manyPlans());
    expect(new Set(keys).size).toBe(10_000);
    expect(keys).toHaveLength(10_000);
    expect(writes).toEqual([]);
    expect(mostInFlight).toBe(concurrency);
    expect(most).toBeLessThanOrEqual(concurrency * 4);
  });

  it.each([
    ['at once', 0],
    ['more slowly than they are received', 1],
  ])(
    'does not pile up partitions in front of slow writers, when they are prepared %s',
    async (_when, turns) => {
      let received = 0;
      let written = 0;
      let most = 0;
      const { run } = queueOf({
        prepare: async (wanted) => {
          for (let wait = 0; wait < turns; wait += 1) await turn();
          return wanted;
        },
        download: (_, { object }) => {
          received += 1;
          most = Math.max(most, received - written);
          return Promise.resolve(object.key);
        },
        write: async () => {
          for (let wait = 0; wait < 20; wait += 1) await turn();
          written += 1;
          return new Map();
        },
      });
      await run(plansOf(200));
      expect(written).toBe(200);
      // Two are written, four wait for a writer, and one is received.
      expect(most).toBeLessThanOrEqual(7);
    },
  );

  it('counts the partitions of all queues until they are written, if a killed process loses them', async () => {
    const places = new Slots({ downloads: 3, writers: 8, boundsUnwritten: true });
    let unwritten = 0;
    const seen: number[] = [];
    const make = (): ReturnType<typeof queueOf> =>
      queueOf(
        {
          download: (_, { object }) => {
            unwritten += 1;
            seen.push(unwritten);
            return Promise.resolve(object.key);
          },
          write: async (_, received) => {
            for (let wait = 0; wait < 20; wait += 1) await turn();
            unwritten -= received.length;
            return new Map();
          },
        },
        3,
        8,
        undefined,
        places,
      );
    await Promise.all([make(), make(), make(), make()].map(({ run }) => run(plansOf(30))));
    expect(seen).toHaveLength(120);
    expect(Math.max(...seen)).toBe(3);
    // A month of 31 daily objects begins, although it has more objects than there are places.
    await make().run([MONTH]);
    expect(unwritten).toBe(0);
  });

  it('follows a new limit while it runs', async () => {
    let inFlight = 0;
    const seen: number[] = [];
    const made = queueOf({
      download: async (_, { object }) => {
        inFlight += 1;
        seen.push(inFlight);
        if (seen.length === 20) made.places.setDownloads(1);
        await turn();
        inFlight -= 1;
        return object.key;
      },
    });
    await made.run(plansOf(60));
    expect(Math.max(...seen.slice(0, 20))).toBe(4);
    expect(Math.max(...seen.slice(30))).toBe(1);
  });

  it.each([200, 256])(
    'keeps few bodies of %i MB alive at once, and still writes a partition that alone is larger',
    async (megabytes) => {
      let alive = 0;
      const seen: number[] = [];
      const { run } = queueOf(
        {
          bytesOf: () => megabytes * 1024 * 1024,
          download: async (_, { object: { key } }) => {
            alive += 1;
            seen.push(alive);
            await turn();
            return key;
          },
          write: async (_, received) => {
            await turn();
            alive -= received.length;
            return new Map();
          },
        },
        16,
      );
      const labels = Array.from({ length: 30 }, (_, label) => String(label));
      await run(
        labels.map((label) => plan(label, [task(label), task('held', 'skip'), task('kept', 'skip')])),
      );
      expect(alive).toBe(0);
      expect(Math.max(...seen)).toBe(2);
      expect(Math.max(...seen.slice(10))).toBe(2);
      await run([MONTH]);
      expect(alive).toBe(0);
    },
  );
});
