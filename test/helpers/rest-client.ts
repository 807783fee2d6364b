/** A REST client whose host answers in process. */
import { BINANCE_ANSWERS } from '../../src/exchange/binance/answers.js';
import { CryptodlError } from '../../src/model/errors.js';
import type { Fetch, FetchRequest, FetchResponse } from '../../src/model/fetch.js';
import { RestClient } from '../../src/exchange/binance/rest-client.js';
import type { RestOptions } from '../../src/exchange/binance/rest-client.js';
import { statusError } from '../../src/http/transport/error-map.js';
import { answer } from './requests.js';
import type { Host } from './rest-venue-types.js';
import type { RestVenue } from './rest-venue.js';

export const URLS = { fapi: 'https://fapi.test', dapi: 'https://dapi.test', spot: 'https://spot.test' };

interface Said {
  readonly status: number;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Answers as the transport would: refusals are errors, and answers are checked. Without any retries. */
function fetchFrom(say: (url: URL) => Said, asked: FetchRequest[] = []): Fetch {
  return async (request) => {
    asked.push(request);
    await new Promise((resolve) => setImmediate(resolve));
    const { status, body, headers = {} } = say(new URL(request.url));
    const head = Buffer.from(body).subarray(0, 4096).toString('utf8');
    const error = statusError(
      { status, headers, head, receivedAtMs: 0 },
      request.url,
      BINANCE_ANSWERS.readRefusal,
    );
    if (error !== undefined) throw error;
    const response: FetchResponse = { ...answer(Buffer.from(body), status === 404 ? 404 : 200), headers };
    request.expect?.check?.(response);
    return response;
  };
}

export interface ClientScene {
  readonly client: RestClient;
  readonly asked: FetchRequest[];
  readonly warnings: string[];
}

export function clientOf(say: (url: URL) => Said, changes: Partial<RestOptions> = {}): ClientScene {
  const asked: FetchRequest[] = [];
  const warnings: string[] = [];
  const client = new RestClient({
    fetch: fetchFrom(say, asked),
    urls: URLS,
    otherSpotUrl: undefined,
    priority: 'normal',
    signal: new AbortController().signal,
    warn: (message) => warnings.push(message),
    ...changes,
  });
  return { client, asked, warnings };
}

/** What the hosts of the venue say; any other host is not there. */
export function sayOf(venue: RestVenue): (url: URL) => Said {
  return (url) => {
    const host = Object.entries(URLS).find(([, base]) => url.origin === base)?.[0];
    if (host === undefined) throw new CryptodlError('host-unknown', url.host);
    return venue.answer(host as Host, url.pathname, url.searchParams);
  };
}
