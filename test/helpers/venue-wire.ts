/** A REST venue in the place of the sockets: one attempt on the wire, in whatever time the clock has. */
import { BINANCE_ANSWERS } from '../../src/exchange/binance/answers.js';
import { createHash } from 'node:crypto';
import type { Clock } from '../../src/model/clock.js';
import { CryptodlError } from '../../src/model/errors.js';
import type { Fetch, FetchResponse } from '../../src/model/fetch.js';
import { statusError } from '../../src/http/transport/error-map.js';
import type { Host, VenueAnswer } from './rest-venue-types.js';
import type { RestVenue } from './rest-venue.js';

const HOSTS = ['fapi', 'dapi', 'spot'] as const;

/** What the program must be told so that it asks this venue. */
export const VENUE_PLACES = Object.fromEntries(HOSTS.map((host) => [`${host}-url`, [`http://${host}.test`]]));

export interface VenueWire {
  readonly fetch: Fetch;
  /** Requests that were begun, and answers that came. */
  readonly events: () => number;
}

/** The venue sees a request at once; its answer is here after `latencyMs`. */
export function venueWire(venue: RestVenue, clock: Clock, latencyMs: number): VenueWire {
  let events = 0;
  const fetch: Fetch = async ({ url }, { signal, onActivity }) => {
    signal.throwIfAborted();
    const { hostname, pathname, searchParams } = new URL(url);
    events += 1;
    onActivity?.('sent');
    const answer = venue.answer(hostOf(hostname), pathname, searchParams);
    await clock.sleep(latencyMs, signal);
    events += 1;
    onActivity?.('headers');
    return received(answer, url, clock.now());
  };
  return { fetch, events: () => events };
}

function hostOf(name: string): Host {
  const host = HOSTS.find((one) => name === `${one}.test`);
  if (host === undefined) throw new Error(`${name} is none of the venue's hosts`);
  return host;
}

function received({ status, headers, body, cut }: VenueAnswer, url: string, now: number): FetchResponse {
  if (cut !== undefined) throw new CryptodlError('connection-lost', `${url}: other side closed`);
  const error = statusError(
    { status, headers, head: body, receivedAtMs: now },
    url,
    BINANCE_ANSWERS.readRefusal,
  );
  if (error !== undefined) throw error;
  const bytes = Buffer.from(body);
  return {
    status: status === 404 ? 404 : 200,
    headers,
    body: { kind: 'memory', bytes },
    sha256: createHash('sha256').update(bytes).digest('hex'),
  };
}
