import { describe, expect, it } from 'vitest';
import { CryptodlError } from '../../../src/model/errors.js';
import type { Fetch, FetchContext, Priority } from '../../../src/model/fetch.js';
import { limitInFlight } from '../../../src/http/throttle/in-flight.js';
import { answer, context, refusal, REQUEST } from '../../helpers/requests.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

/** Requests that end when the test says so, in front of which so many are under way per host. */
function limited(most: number) {
  const clock = new VirtualClock();
  const flying: { readonly url: string; readonly end: () => void }[] = [];
  const next: Fetch = ({ url }) =>
    new Promise((resolve, reject) => {
      const end = (): void => {
        if (url.endsWith('bad')) reject(new Error('said by the test'));
        else resolve(answer());
      };
      flying.push({ url, end });
    });
  const fetch = limitInFlight({ clock, most, groupOf: ({ url }) => new URL(url).host, wait: 'socket' })(next);
  const ask = (path: string, priority: Priority = 'normal', within: FetchContext = context()) => {
    const response = fetch({ ...REQUEST, url: `http://${path}`, priority }, within);
    response.catch(() => undefined);
    return response;
  };
  const end = async (): Promise<void> => {
    flying.shift()?.end();
    await clock.advance(0);
  };
  return { clock, flying, ask, end, urls: () => flying.map(({ url }) => url.slice('http://'.length)) };
}

describe('limitInFlight', () => {
  it('lets so many through per place; the others follow by priority, then in their order', async () => {
    const { clock, ask, end, urls } = limited(2);
    for (const path of ['a/1', 'a/2', 'a/3', 'b/1', 'a/4']) void ask(path);
    void ask('a/high', 'high');
    await clock.advance(0);
    expect(urls()).toEqual(['a/1', 'a/2', 'b/1']);
    await end();
    expect(urls()).toEqual(['a/2', 'b/1', 'a/high']);
    await end();
    await end();
    expect(urls()).toEqual(['a/high', 'a/3']);
  });

  it('counts a request that failed no longer', async () => {
    const { clock, ask, end, urls } = limited(1);
    void ask('a/bad');
    void ask('a/2');
    await clock.advance(0);
    await end();
    expect(urls()).toEqual(['a/2']);
    await end();
    void ask('a/3');
    await clock.advance(0);
    expect(urls()).toEqual(['a/3']);
  });

  it.each(['signal', 'waitSignal'] as const)('is not waited for when the %s aborts', async (which) => {
    const { clock, ask, end, urls } = limited(1);
    const stop = new AbortController();
    void ask('a/1');
    const waiting = ask('a/2', 'normal', { ...context(), [which]: stop.signal });
    void ask('a/3');
    await clock.advance(0);
    stop.abort(new CryptodlError('interrupted', 'said by the test'));
    expect((await refusal(waiting)).code).toBe('interrupted');
    await end();
    expect(urls()).toEqual(['a/3']);
  });
});
