import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { AttemptEnd, Fetch, FetchContext, FetchResponse, Sign } from '../../../src/model/fetch.js';
import { measureLayer } from '../../../src/http/transport/measure.js';
import { answer, context, REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

/** An attempt on which the test makes things happen. */
function measured() {
  const clock = new VirtualClock();
  const told: AttemptEnd[] = [];
  const counts = { begun: 0 };
  const signs: [Sign, number | undefined][] = [];
  let inner: FetchContext | undefined;
  let resolve = (_response: FetchResponse): void => undefined;
  let reject = (_error: unknown): void => undefined;
  const next: Fetch = (_, how) => {
    inner = how;
    return new Promise((give, refuse) => {
      resolve = give;
      reject = refuse;
    });
  };
  const layer = measureLayer(clock, () => {
    counts.begun += 1;
    return (attempt) => told.push(attempt);
  });
  const how: FetchContext = {
    ...context(),
    attemptId: 'trace/2',
    onActivity: (sign, bytes) => void signs.push([sign, bytes]),
  };
  const response = layer(next)(REQUEST, how);
  response.catch(() => undefined);
  const happens = async (sign: Sign, afterMs: number, bytes?: number): Promise<void> => {
    await clock.advance(afterMs);
    inner?.onActivity?.(sign, bytes);
  };
  return {
    clock,
    told,
    counts,
    signs,
    response,
    happens,
    finish: () => {
      resolve(answer());
    },
    fail: (error: unknown) => {
      reject(error);
    },
  };
}

describe('the measure of an attempt', () => {
  it('begins when it is sent, not while it waits for a socket, and has the time to its first byte', async () => {
    const { clock, told, counts, response, happens, finish } = measured();
    const began = clock.monotonic();
    expect([counts.begun, told]).toEqual([1, []]);
    await happens('sent', 5000);
    await happens('headers', 70);
    await happens('bytes', 30, 9);
    finish();
    await response;
    expect(told).toEqual([
      {
        request: REQUEST,
        attemptId: 'trace/2',
        begunAtMs: began,
        sentAtMs: began + 5000,
        endedAtMs: began + 5100,
        firstByteMs: 70,
        error: undefined,
      },
    ]);
  });

  it('gets a failure with its error, which also reaches the caller', async () => {
    const { told, counts, response, happens, fail } = measured();
    await happens('sent', 0);
    const error = new CryptodlError('connection-lost', 'said by the test');
    fail(error);
    await expect(response).rejects.toBe(error);
    expect(counts.begun).toBe(1);
    expect(told).toMatchObject([{ error, firstByteMs: undefined }]);
  });

  it('has a time also for a request that was never sent', async () => {
    const { clock, told, response, fail } = measured();
    const began = clock.monotonic();
    await clock.advance(300);
    fail(new CryptodlError('connect-failed', 'said by the test'));
    await response.catch(() => undefined);
    expect(told).toMatchObject([{ sentAtMs: began, endedAtMs: began + 300, firstByteMs: undefined }]);
  });

  it('lets every sign of life pass on to the deadlines', async () => {
    const { signs, happens } = measured();
    const all = ['sent', 'headers', 'bytes', 'paused', 'resumed'] as const;
    for (const sign of all) await happens(sign, 1, 7);
    expect(signs).toEqual(all.map((sign) => [sign, 7]));
  });

  it('needs no listener for the signs', async () => {
    const layer = measureLayer(new VirtualClock(), () => () => undefined);
    const next: Fetch = (_, { onActivity }) => {
      onActivity?.('sent');
      return Promise.resolve(answer('it'));
    };
    expect((await layer(next)(REQUEST, context())).status).toBe(200);
  });
});
