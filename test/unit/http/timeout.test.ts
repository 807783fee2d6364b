import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import { context, refusal, REQUEST } from '../../helpers/requests.js';
import { timedAttempt } from '../../helpers/timed-attempt.js';

const KIB = 1024;

describe('timeout', () => {
  it('counts the time for the headers from the moment the request is sent, not from the wait for a socket', async () => {
    const { clock, response, happens, isAborted, ends } = timedAttempt();
    await clock.advance(20_000);
    happens('sent');
    await clock.advance(4999);
    expect(isAborted()).toBe(false);
    await clock.advance(1);
    const error = await refusal(response);
    expect(error.code).toBe('headers-timeout');
    expect(error.message).toBe('archive.test: no headers within 5s');
    expect(error.retryable).toBe(true);
    // The attempt itself ends, so that nothing goes on behind the back of the caller.
    expect(ends[0]).toBe(error);
  });

  it('ends a silent body, and measures the silence from the last byte', async () => {
    const { clock, response, happens, isAborted } = timedAttempt();
    happens('sent');
    happens('headers');
    for (let chunk = 0; chunk < 5; chunk += 1) {
      await clock.advance(2999);
      happens('bytes');
    }
    await clock.advance(2999);
    expect(isAborted()).toBe(false);
    await clock.advance(1);
    expect((await refusal(response)).code).toBe('idle-timeout');
  });

  it('ends a body that only trickles when the total is over', async () => {
    const { clock, response, happens, isAborted } = timedAttempt();
    happens('sent');
    happens('headers');
    for (let second = 0; second < 59; second += 1) {
      await clock.advance(1000);
      happens('bytes', 2 * KIB);
    }
    await clock.advance(999);
    expect(isAborted()).toBe(false);
    await clock.advance(1);
    expect((await refusal(response)).code).toBe('total-timeout');
  });

  it('gives a large object a second more for every 16 KiB', async () => {
    const { clock, response, isAborted } = timedAttempt(10 * 16 * KIB);
    await clock.advance(69_999);
    expect(isAborted()).toBe(false);
    await clock.advance(1);
    const error = await refusal(response);
    expect(error.code).toBe('total-timeout');
    expect(error.message).toContain('70s');
  });

  it('leaves no listener on the signal of the run', async () => {
    const { outer, response, finish } = timedAttempt();
    expect(getEventListeners(outer.signal, 'abort')).toHaveLength(1);
    finish();
    await response;
    expect(getEventListeners(outer.signal, 'abort')).toEqual([]);
  });

  it('ends each of several attempts at its own deadline', async () => {
    const { clock, response, fetch, contexts, ends } = timedAttempt();
    await clock.advance(1000);
    const second = fetch(REQUEST, context());
    second.catch(() => undefined);
    await clock.advance(1000);
    const third = fetch(REQUEST, context());
    third.catch(() => undefined);
    const aborted = () => contexts.map((_, index) => ends[index] !== undefined);
    // The deadline of a later attempt comes first.
    contexts[1]?.onActivity?.('sent');
    contexts[2]?.onActivity?.('sent');
    contexts[2]?.onActivity?.('headers');
    await clock.advance(2999);
    expect(aborted()).toEqual([false, false, false]);
    await clock.advance(1);
    expect(aborted()).toEqual([false, false, true]);
    expect((await refusal(third)).code).toBe('idle-timeout');
    await clock.advance(1999);
    expect(aborted()).toEqual([false, false, true]);
    await clock.advance(1);
    expect((await refusal(second)).code).toBe('headers-timeout');
    await clock.advance(52_999);
    expect(aborted()).toEqual([false, true, true]);
    await clock.advance(1);
    expect((await refusal(response)).code).toBe('total-timeout');
  });

  it('watches an attempt that begins after all others have ended', async () => {
    const { clock, fetch, response, finish, happens, isAborted } = timedAttempt();
    happens('sent');
    finish();
    await response;
    await clock.advance(1000);
    const later = fetch(REQUEST, context());
    later.catch(() => undefined);
    happens('sent');
    await clock.advance(4999);
    expect(isAborted()).toBe(false);
    await clock.advance(1);
    expect(isAborted()).toBe(true);
    expect((await refusal(later)).code).toBe('headers-timeout');
  });

  it('passes an abort of the run on to the attempt, with its reason', async () => {
    const { clock, outer, response } = timedAttempt();
    outer.abort(new CryptodlError('interrupted', 'ended by SIGINT'));
    expect((await refusal(response)).code).toBe('interrupted');
    expect(clock.waiting).toBe(0);
  });

  it('leaves no timer behind, whether the attempt succeeds or not', async () => {
    const good = timedAttempt();
    good.happens('sent');
    good.happens('headers');
    good.happens('bytes');
    good.finish();
    await good.response;
    expect(good.clock.waiting).toBe(0);
    const bad = timedAttempt();
    bad.happens('sent');
    await bad.clock.advance(5000);
    await refusal(bad.response);
    expect(bad.clock.waiting).toBe(0);
  });

  it.each([
    ['ends a body that trickles, however steadily (N-rows: slow-loris)', KIB - 1, true],
    ['lets a body be that has just reached the floor', KIB, false],
  ])('%s', async (_, bytesPerSecond, isEnded) => {
    const { clock, response, happens, isAborted } = timedAttempt();
    happens('sent');
    happens('headers');
    for (let second = 0; second < 30; second += 1) {
      happens('bytes', bytesPerSecond);
      await clock.advance(1000);
    }
    expect(isAborted()).toBe(isEnded);
    if (isEnded) expect(await refusal(response)).toMatchObject({ code: 'too-slow', retryable: true });
  });

  it('does not hold the time that our own disk takes against the host', async () => {
    const { clock, happens, isAborted, response } = timedAttempt();
    happens('sent');
    happens('headers');
    happens('paused');
    await clock.advance(50_000);
    expect(isAborted()).toBe(false);
    happens('resumed');
    await clock.advance(3000);
    expect((await refusal(response)).code).toBe('idle-timeout');
  });
});
