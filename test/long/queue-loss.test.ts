/** A server that goes away while a command without jobs in hand waits for its answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, describe, it, onTestFinished } from 'vitest';
import type { Io } from '../../src/model/io.js';
import { withQueue } from '../../src/verbs/queue/open-queue.js';
import type { CommandQueue } from '../../src/verbs/queue/open-queue.js';
import { HAS_REDIS, NEEDS_REDIS, startRedis } from '../helpers/redis-server.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

describe.skipIf(!HAS_REDIS)(`a command on a queue whose server is away${NEEDS_REDIS}`, () => {
  /** A command that asks the server again and again, and its clock and signals. */
  const begin = async (verb: string) => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const clock = new VirtualClock();
    let signal: (name: 'SIGTERM') => void = () => undefined;
    const io = {
      clock,
      stderr: { write: () => true },
      signal: new AbortController().signal,
      onSignal: (act: typeof signal) => {
        signal = act;
        return () => undefined;
      },
    } as unknown as Io;
    const opened: CommandQueue[] = [];
    const ended = withQueue({ redis: redis.address, queue: 'main' }, verb, io, async (queue) => {
      opened.push(queue);
      for (;;) await queue.open.queue.getWaitingCount();
    });
    ended.catch(() => undefined);
    while (opened.length === 0) await sleep(10);
    const [{ client, close }] = opened.map(({ open }) => open.connection) as [
      CommandQueue['open']['connection'],
    ];
    onTestFinished(close);
    await redis.kill();
    while (client.status === 'ready') await sleep(10);
    return { clock, ended, signal: () => signal('SIGTERM') };
  };

  it('ends after two minutes', async () => {
    const { clock, ended } = await begin('status');
    await clock.advance(120_000);
    await expect(ended).rejects.toMatchObject({ code: 'redis-unreachable' });
  });

  it('ends soon after a signal', async () => {
    const { clock, ended, signal } = await begin('enqueue');
    signal();
    await clock.advance(5000);
    expect(await ended).toBe(143);
  });

  it('waits on as a worker', async () => {
    const { clock, ended } = await begin('worker');
    await clock.advance(3_600_000);
    const isOver = await Promise.race([
      ended.then(
        () => true,
        () => true,
      ),
      sleep(50).then(() => false),
    ]);
    expect(isOver).toBe(false);
  });
});
