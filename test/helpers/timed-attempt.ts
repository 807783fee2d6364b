/** An attempt with deadlines, on which the test makes things happen. */
import { ZIP as ZIP_FORMAT } from '../../src/exchange/zip/unzip.js';
import type { Fetch, FetchContext, Sign } from '../../src/model/fetch.js';
import { timeoutLayer } from '../../src/http/transport/timeout.js';
import { answer, context, REQUEST } from './requests.js';
import { VirtualClock } from './virtual-clock.js';

/** 5 s for the headers, 3 s of silence, a minute in all. It answers only when told to, and obeys its signal. */
export function timedAttempt(expectedBytes?: number, outer = new AbortController()) {
  const clock = new VirtualClock();
  const contexts: FetchContext[] = [];
  /** The reason of the end of each attempt, in the order of `contexts`; undefined while it goes on. */
  const ends: unknown[] = [];
  let finish = (): void => undefined;
  const next: Fetch = (_request, inner) => {
    const index = contexts.push(inner) - 1;
    return new Promise((resolve, reject) => {
      finish = () => {
        resolve(answer());
      };
      inner.expiry?.onOver((reason) => {
        ends[index] = reason;
        reject(reason);
      });
    });
  };
  const fetch = timeoutLayer(clock, { headersTimeoutMs: 5000, idleTimeoutMs: 3000, totalTimeoutMs: 60_000 })(
    next,
  );
  const expects = expectedBytes === undefined ? {} : { expect: { format: ZIP_FORMAT, bytes: expectedBytes } };
  const response = fetch({ ...REQUEST, ...expects }, context(outer.signal));
  response.catch(() => undefined);
  return {
    clock,
    outer,
    response,
    fetch,
    contexts,
    ends,
    happens: (what: Sign, bytes?: number) => contexts.at(-1)?.onActivity?.(what, bytes),
    finish: () => {
      finish();
    },
    isAborted: () => ends[contexts.length - 1] !== undefined,
  };
}
