/** What the archive is asked besides its objects: pages of its listing, and whether a sidecar is there. */
import { randomUUID } from 'node:crypto';
import { CryptodlError } from '../model/errors.js';
import type { Expectation, Fetch, FetchResponse } from '../http/fetch.js';
import type { Options } from '../options/flags.js';
import type { GotPage } from './listing.js';
import { parseListing } from './listing-xml.js';
import type { Failover } from '../http/retry/fallback-host.js';
import { keyPath, SIDECAR } from './keys.js';

export interface Asks {
  readonly fetch: Fetch;
  readonly options: Options;
  readonly failover: Failover;
  readonly signal: AbortSignal;
}

const LISTING_MAX_BYTES = 16 * 1024 * 1024;

/** `heldEtag`: of a page that is held, which may be unchanged. A page that cannot be read is asked for again like any other failure. */
export async function getListing(
  { fetch, options, signal }: Asks,
  base: string,
  query: string,
  heldEtag: string | undefined,
): Promise<GotPage | 'unchanged'> {
  let page: GotPage | 'unchanged' | undefined;
  const expect: Expectation = {
    zip: false,
    check: ({ status, headers, body }) => {
      if (status === 404 || body.kind === 'file')
        throw new CryptodlError('listing-malformed', `${new URL(base).host} has no listing`);
      const pageEtag = headers['etag'];
      page =
        status === 304
          ? 'unchanged'
          : { ...parseListing(body.bytes), ...(pageEtag === undefined ? {} : { pageEtag }) };
    },
  };
  const request = {
    url: `${base}/?${query}`,
    bucket: 'listing',
    maxBytes: LISTING_MAX_BYTES,
    spoolAboveBytes: LISTING_MAX_BYTES,
    expect,
    priority: options.priority,
    ...(heldEtag === undefined ? {} : { heldEtag }),
  };
  await fetch(request, { signal, traceId: randomUUID() });
  if (page === undefined) throw new CryptodlError('bug', 'a listing was not checked');
  return page;
}

const NO_CONNECTION: ReadonlySet<string> = new Set([
  'connect-failed',
  'proxy-unreachable',
  'dns-failed',
  'host-unknown',
  'connect-timeout',
]);

/** Resolves with true when nobody can say: the download then gives the object a named outcome. */
export async function probeSidecar(asks: Asks, key: string): Promise<boolean> {
  const answer = await askSidecar(asks, key);
  if (!(answer instanceof CryptodlError)) return answer.status === 200;
  if (!NO_CONNECTION.has(answer.code) || asks.failover.isAhead) return true;
  if (answer.code === 'proxy-unreachable')
    throw new CryptodlError('unreachable', answer.message, { cause: answer, hint: answer.hint ?? '' });
  throw new CryptodlError('unreachable', `the archive cannot be reached: ${answer.message}`, {
    cause: answer,
    hint: 'check the network and --archive-url',
  });
}

/** Whether the archive says anything of an object, if only that there is none. */
export async function archiveAnswers(asks: Asks, key: string): Promise<boolean> {
  return !((await askSidecar(asks, key)) instanceof CryptodlError);
}

async function askSidecar(
  { fetch, options, signal }: Asks,
  key: string,
): Promise<FetchResponse | CryptodlError> {
  const url = `${options.archiveUrl}/${keyPath(key)}${SIDECAR}`;
  try {
    return await fetch(
      { url, bucket: 'archive', maxBytes: 65_536, priority: options.priority },
      { signal, traceId: randomUUID() },
    );
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.fatal) throw error;
    return error;
  }
}
