/** `--bwlimit`: how fast bodies may arrive, all connections together. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { FetchContext, Sign } from '../../../src/model/fetch.js';
import { limitBandwidth } from '../../../src/http/transport/bandwidth.js';
import { context, refusal, REQUEST } from '../../helpers/requests.js';
import { timedAttempt } from '../../helpers/timed-attempt.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';
import { wire } from '../../helpers/wire.js';
import { httpAnswer, wireServer } from '../../helpers/wire-server.js';

const KIB = 1024;
const never = new AbortController().signal;
/** Debts of less are not waited for. */
const SLACK_MS = 5;

describe('a limit of bandwidth', () => {
  it('lets at most rate × t bytes through in any span, and one chunk for each connection', async () => {
    const chunk = fc.tuple(fc.integer({ min: 1, max: 64 * KIB }), fc.nat(500));
    const connection = fc.array(chunk, { minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: KIB, max: 4 * KIB * KIB }),
        fc.array(connection, { minLength: 1, maxLength: 4 }),
        async (rate, connections) => {
          const clock = new VirtualClock();
          const bandwidth = limitBandwidth(rate, clock, never);
          const came: { at: number; bytes: number }[] = [];
          const largest = connections.map((chunks) => Math.max(...chunks.map(([bytes]) => bytes)));
          const all = connections.map(async (chunks) => {
            for (const [bytes, gapMs] of chunks) {
              await clock.sleep(gapMs);
              came.push({ at: clock.monotonic(), bytes });
              await bandwidth.take(bytes);
            }
          });
          const total = connections.flat().reduce((sum, [bytes]) => sum + bytes, 0);
          await clock.advance((total / rate) * 1000 + 30 * 500 + 1000);
          await Promise.all(all);
          const most = largest.reduce((sum, bytes) => sum + bytes, 0) + (rate * SLACK_MS) / 1000;
          for (const [first, { at: from }] of came.entries()) {
            let sum = 0;
            for (const { at: to, bytes } of came.slice(first)) {
              sum += bytes;
              expect(sum).toBeLessThanOrEqual((rate * (to - from)) / 1000 + most + 1);
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('is used up: a steady stream arrives at the rate, not slower', async () => {
    const clock = new VirtualClock();
    const bandwidth = limitBandwidth(100 * KIB, clock, never);
    let bytes = 0;
    const stream = async (): Promise<void> => {
      while (bytes < 10 * 100 * KIB) {
        bytes += 16 * KIB;
        await bandwidth.take(16 * KIB);
      }
    };
    const streams = Promise.all([stream(), stream(), stream()]);
    await clock.advance(10_000);
    expect(bytes).toBeGreaterThanOrEqual(10 * 100 * KIB);
    await clock.advance(1000);
    await streams;
  });

  it('saves nothing up while nothing comes', async () => {
    const clock = new VirtualClock();
    const bandwidth = limitBandwidth(10 * KIB, clock, never);
    await clock.advance(60_000);
    expect(bandwidth.take(10 * KIB)).toBeInstanceOf(Promise);
  });

  it('does not wait for a very short time', () => {
    const bandwidth = limitBandwidth(1024 * KIB, new VirtualClock(), never);
    expect(bandwidth.take(KIB)).toBeUndefined();
  });

  it('ends its waits with the run', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const waiting = refusal(Promise.resolve(limitBandwidth(KIB, clock, stop.signal).take(100 * KIB)));
    stop.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
    expect((await waiting).code).toBe('interrupted');
    expect(clock.waiting).toBe(0);
  });
});

describe('pauses made by the program', () => {
  it('do not count for the total timeout, however many they are', async () => {
    const step = fc.tuple(fc.integer({ min: 1, max: 2900 }), fc.integer({ min: 1, max: 50_000 }));
    const pauses = fc.array(step, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(pauses, async (steps) => {
        const { clock, response, happens, isAborted } = timedAttempt();
        happens('sent');
        happens('headers');
        let ownMs = 0;
        for (const [workMs, pauseMs] of steps) {
          if (ownMs + workMs >= 60_000) break;
          await clock.advance(workMs);
          ownMs += workMs;
          happens('bytes', 64 * KIB);
          happens('paused');
          await clock.advance(pauseMs);
          expect(isAborted()).toBe(false);
          happens('resumed');
        }
        // What is left of the minute is the host's, to the millisecond.
        while (ownMs < 59_999) {
          const stepMs = Math.min(2900, 59_999 - ownMs);
          await clock.advance(stepMs);
          ownMs += stepMs;
          happens('bytes', 64 * KIB);
        }
        expect(isAborted()).toBe(false);
        await clock.advance(1);
        expect((await refusal(response)).code).toBe('total-timeout');
        expect(clock.waiting).toBe(0);
      }),
      { numRuns: 20 },
    );
  });

  it('take bytes that arrive in one, without a limit of silence', async () => {
    const { clock, response, happens, finish, isAborted } = timedAttempt();
    happens('sent');
    happens('headers');
    happens('bytes', 64 * KIB);
    happens('paused');
    happens('bytes', 64 * KIB);
    await clock.advance(50_000);
    expect(isAborted()).toBe(false);
    happens('resumed');
    finish();
    expect((await response).status).toBe(200);
    expect(clock.waiting).toBe(0);
  });
});

describe('a limited transport', () => {
  it('an attempt that was aborted in a pause says nothing any more when the pause is over', async () => {
    const { url } = await wireServer((socket) =>
      socket.write(httpAnswer(200, 'half', ['Content-Length: 100'])),
    );
    let go = (): void => undefined;
    const pause = new Promise<void>((resolve) => {
      go = resolve;
    });
    const signs: Sign[] = [];
    const stop = new AbortController();
    const how: FetchContext = {
      ...context(stop.signal),
      onActivity: (sign) => {
        signs.push(sign);
        if (sign === 'paused') stop.abort(new CryptodlError('total-timeout', 'said by the test'));
      },
    };
    const ended = await refusal(wire({ bandwidth: { take: () => pause } })({ ...REQUEST, url }, how));
    expect(ended.code).toBe('total-timeout');
    go();
    await new Promise((resolve) => setImmediate(resolve));
    expect(signs).toEqual(['sent', 'headers', 'bytes', 'paused']);
  });

  it('does not wait for a body that it refuses at the end of the run', async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', onUnhandled);
    try {
      const { url } = await wireServer((socket) => socket.write(httpAnswer(200, 'x'.repeat(100))));
      const take = (): Promise<void> => Promise.reject(new CryptodlError('interrupted', 'the run is over'));
      const error = await refusal(
        wire({ bandwidth: { take } })({ ...REQUEST, url, maxBytes: 10 }, context()),
      );
      expect(error.code).toBe('length-mismatch');
      await new Promise((resolve) => setImmediate(resolve));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', onUnhandled);
    }
  });
});
