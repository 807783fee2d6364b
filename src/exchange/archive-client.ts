/** Requests to the archive, except listings and downloads of objects: sidecars, and tests whether it answers. */
import { randomUUID } from 'node:crypto';
import { CryptodlError, NO_CONNECTION } from '../model/errors.js';
import type { Fetch, FetchResponse, Priority } from '../model/fetch.js';
import type { Failover } from '../http/throttle/failover.js';
import { urlPathOf } from './keys.js';
import type { Archive, Sidecar } from './exchange.js';

export interface ArchiveAccess {
  readonly fetch: Fetch;
  readonly options: { readonly archiveUrl: string; readonly priority: Priority };
  readonly archive: Pick<Archive, 'listing' | 'sidecar' | 'known'>;
  readonly failover: Failover;
  readonly signal: AbortSignal;
}

/** Sidecars have about 100 bytes. */
const SIDECAR_MAX_BYTES = 64 * 1024;

/**
 * Whether the sidecar of an object exists. Also true if the request fails or the archive has no sidecars, because the download then
 * decides. Rejects with `unreachable` if the archive cannot be reached and no other source has the data, and with fatal errors.
 */
export async function probeSidecar(access: ArchiveAccess, key: string): Promise<boolean> {
  const { sidecar } = access.archive;
  if (sidecar === undefined) return true;
  const answer = await requestSmall(access, key + sidecar.suffix);
  if (!(answer instanceof CryptodlError)) return answer.status === 200;
  if (!NO_CONNECTION.has(answer.code) || access.failover.isPossible) return true;
  const { code, message, hint = '' } = answer;
  const isProxy = code === 'proxy-unreachable';
  throw new CryptodlError('unreachable', isProxy ? message : `the archive cannot be reached: ${message}`, {
    cause: answer,
    hint: isProxy ? hint : 'check the network and --archive-url',
  });
}

/** Whether the archive answers a request, also with 404. Without sidecars, a known small object is requested. */
export async function archiveAnswers(access: ArchiveAccess, key: string): Promise<boolean> {
  const { sidecar, known } = access.archive;
  const answer = await requestSmall(access, sidecar === undefined ? known.key : key + sidecar.suffix);
  return !(answer instanceof CryptodlError);
}

/** The answer, or the error of the request. Rejects with a fatal error. */
async function requestSmall(access: ArchiveAccess, key: string): Promise<FetchResponse | CryptodlError> {
  try {
    return await fetchSmall(access, key);
  } catch (error) {
    if (!(error instanceof CryptodlError) || error.fatal) throw error;
    return error;
  }
}

function fetchSmall(
  { fetch, options: { archiveUrl, priority }, signal }: Pick<ArchiveAccess, 'fetch' | 'options' | 'signal'>,
  key: string,
  bypassCache = false,
): Promise<FetchResponse> {
  const url = `${archiveUrl}/${urlPathOf(key)}`;
  const request = { url, bucket: 'archive', priority, maxBytes: SIDECAR_MAX_BYTES, bypassCache };
  return fetch(request, { signal, traceId: randomUUID() });
}

/** The published SHA-256 of an object; undefined if it has no sidecar, or if the sidecar is still malformed after a second request past caches. */
export async function publishedDigest(
  access: Pick<ArchiveAccess, 'fetch' | 'options' | 'signal'>,
  sidecar: Sidecar,
  key: string,
  bypassCache = false,
): Promise<string | undefined> {
  const { status, body } = await fetchSmall(access, key + sidecar.suffix, bypassCache);
  if (status === 404 || body.kind === 'file') return undefined;
  const digest = sidecar.digestIn(body.bytes.toString('utf8'), key);
  return digest === undefined && !bypassCache ? publishedDigest(access, sidecar, key, true) : digest;
}
