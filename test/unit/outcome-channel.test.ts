import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { TaskOutcome } from '../../src/model/outcome.js';
import { OutcomeChannel } from '../../src/download/outcome-channel.js';

function outcome(index: number): TaskOutcome {
  return {
    outcome: 'skipped',
    market: 'um',
    dataset: 'metrics',
    symbol: 'BTCUSDT',
    cadence: 'daily',
    period: '2024-01-15',
    key: String(index),
  };
}

/** Pushes one outcome after the other, like a run; tells how many were taken. */
function producer(channel: OutcomeChannel, outcomes: number): { pushed: () => number; done: Promise<void> } {
  let pushed = 0;
  const work = async (): Promise<void> => {
    for (let index = 0; index < outcomes; index += 1) {
      await channel.push(outcome(index));
      pushed += 1;
    }
    channel.end();
  };
  return { pushed: () => pushed, done: work() };
}

describe('outcomes on their way out', () => {
  it('arrive all, in order, however many there are', async () => {
    const channel = new OutcomeChannel();
    const { done } = producer(channel, 5000);
    const keys: string[] = [];
    for await (const { key } of channel.read()) keys.push(key);
    await done;
    expect(keys).toEqual(Array.from({ length: 5000 }, (_, index) => String(index)));
  });

  it('make the run wait while no reader takes them', async () => {
    const channel = new OutcomeChannel();
    const { pushed, done } = producer(channel, 5000);
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect(pushed()).toBeLessThan(1001);
    channel.discard();
    await done;
    expect(pushed()).toBe(5000);
  });

  it('are waited for by their reader', async () => {
    const channel = new OutcomeChannel();
    const reader = channel.read();
    const first = reader.next();
    await turn();
    await channel.push(outcome(1));
    expect((await first).value).toMatchObject({ key: '1' });
    channel.end();
    expect((await reader.next()).done).toBe(true);
  });

  it('are dropped after the reader has left', async () => {
    const channel = new OutcomeChannel();
    channel.discard();
    const { done } = producer(channel, 3000);
    await done;
    expect(await channel.read().next()).toEqual({ done: true, value: undefined });
  });
});
