/** One archive object from the wire to its CSV. Only this file connects fetch, verification and unpacking. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CryptodlError } from '../../model/errors.js';
import { bodySize } from '../../model/fetch.js';
import type { Body, Expectation, FetchRequest, FetchResponse } from '../../model/fetch.js';
import type { SourceObject, PartitionPlan, Task } from '../../model/task.js';
import type { Options } from '../../plan/options/flags.js';
import { md5OfEtag } from '../../http/transport/verify-body.js';
import { publishedDigest } from '../../exchange/archive-client.js';
import { urlPathOf } from '../../exchange/keys.js';
import { beginsWithHeader, type ReceivedObject } from '../../convert/csv-input.js';
import type { ReceivedZip, Session } from '../session/session.js';
import { isLabel } from '../../text/json.js';
import { NEWLINE } from '../../text/csv.js';
import { BODY_MEMORY_BYTES } from '../../http/transport/sink.js';

/** `instead`: the object is absent, or the held one stays, because REST does not have more rows, or refused the request. */
export type Arrived =
  { readonly received: ReceivedObject } | { readonly instead: Exclude<Task['action'], { kind: 'fetch' }> };

/** How a planned object arrived, or how else its download ended. */
export interface Arrival {
  readonly task: Task;
  readonly end: Arrived | { readonly error: CryptodlError };
}

/** The session of a run. Temporary files are made in `runFolder`. */
export interface DownloadContext extends Pick<Session, 'fetch' | 'runFolder' | 'live' | 'exchange' | 'zips'> {
  readonly options: Options<'archive-url' | 'priority' | 'stale-checksum' | 'verify'>;
  readonly stop: Pick<AbortController, 'signal'>;
}

/** No archive object unpacks to more than a fraction of this. */
const CSV_MAX_BYTES = 64 * 2 ** 30;
/** The largest allowed ratio of a CSV to its zip. Rows that differ only in their times compress 22 to 1 (measured with a day of 1s bars without trades). */
const CSV_MAX_RATIO = 100;
/** Three times the largest object of the archive, for objects whose size is not listed. */
const ZIP_MAX_BYTES = 8 * 2 ** 30;
/** A new revision may be larger than the listed one. A much larger one is refused, and fetched when the listing has its new size. */
const [LISTED_GROWTH, LISTED_MARGIN_BYTES] = [2, 1024 * 1024];
const EMPTY: Body = { kind: 'memory', bytes: Buffer.alloc(0) };

/** The outcome is a hole if the archive has no such object. If bytes were refused, the error has them as `evidence`. */
export async function downloadObject(
  context: DownloadContext,
  plan: PartitionPlan,
  object: SourceObject,
): Promise<Arrived> {
  const spool = join(context.runFolder, randomUUID());
  try {
    const received = await receive(context, plan, object, spool);
    return received === undefined ? { instead: { kind: 'absent', reason: 'hole' } } : { received };
  } catch (error) {
    // Refused bytes go to the quarantine as evidence; other spool files are removed.
    const isEvidence = error instanceof CryptodlError && error.evidence !== undefined;
    await Promise.all(
      (isEvidence ? ['.csv'] : ['.csv', '.zip']).map((ending) => rm(spool + ending, { force: true })),
    );
    throw error;
  }
}

async function receive(
  context: DownloadContext,
  plan: PartitionPlan,
  object: SourceObject,
  spool: string,
): Promise<ReceivedObject | undefined> {
  const { zips } = context;
  const request = (): Promise<ReceivedZip | undefined> => requestZip(context, object, `${spool}.zip`);
  const zip = await (zips?.zipOf(object, `${spool}.zip`, request) ?? request());
  if (zip === undefined) return undefined;
  const keepsZip = (plan.settings.format === 'zip' && zip.verified !== 'crc') || zips?.isLast === true;
  const csv = keepsZip ? EMPTY : await unpack(context, { plan, object }, zip, `${spool}.csv`);
  return { object, ...zip, csv, name: context.exchange.archive.packing.rowsName(object.key) };
}

async function requestZip(
  context: DownloadContext,
  object: SourceObject,
  spoolPath: string,
): Promise<ReceivedZip | undefined> {
  const sidecar = publishedOf(context, object);
  const expect = expectation(context, object, sidecar?.ask);
  const url = `${context.options.archiveUrl}/${urlPathOf(object.key)}`;
  const request = {
    url,
    bucket: 'archive',
    priority: context.options.priority,
    spoolPath,
    spoolAboveBytes: BODY_MEMORY_BYTES,
    maxBytes: object.bytes === undefined ? ZIP_MAX_BYTES : object.bytes * LISTED_GROWTH + LISTED_MARGIN_BYTES,
    expect,
  };
  const { response, isStale } = await fetchObject(context, request);
  if (response.status === 404) return undefined;
  const published = await sidecar?.last();
  const isByEtag = isStale || (published === undefined && expect.md5 !== undefined);
  const verified = isByEtag ? 'etag' : published === undefined ? 'crc' : 'sidecar';
  return {
    body: response.body,
    bytes: bodySize(response.body),
    sha256: response.sha256,
    verified,
    ...(isStale && published !== undefined ? { staleSidecar: published } : {}),
    ...revisionOf(object, response),
  };
}

/** `isStale`: only the sidecar's digest differs, and `staleChecksum` is `warn`. */
async function fetchObject(
  context: DownloadContext,
  request: FetchRequest,
): Promise<{ response: FetchResponse; isStale: boolean }> {
  try {
    const response = await context.fetch(request, { signal: context.stop.signal, traceId: randomUUID() });
    return { response, isStale: false };
  } catch (error) {
    const taken =
      error instanceof CryptodlError && error.code === 'sidecar-stale' ? error.evidence : undefined;
    if (taken === undefined || context.options.staleChecksum === 'fail') throw error;
    return { response: taken, isStale: true };
  }
}

async function unpack(
  context: DownloadContext,
  { plan, object }: { plan: PartitionPlan; object: SourceObject },
  { body, sha256 }: ReceivedZip,
  spoolPath: string,
): Promise<Body> {
  const { packing } = context.exchange.archive;
  const name = packing.rowsName(object.key);
  const options = {
    spoolPath,
    memoryBytes: BODY_MEMORY_BYTES,
    maxBytes: CSV_MAX_BYTES,
    maxRatio: CSV_MAX_RATIO,
    signal: context.stop.signal,
  };
  try {
    return await context.live.during('check', { plan, object }, () => packing.unpack(body, name, options));
  } catch (error) {
    if (!(error instanceof CryptodlError)) throw error;
    const evidence = { status: 200, headers: {}, body, sha256 } as const;
    throw new CryptodlError(error.code, error.message, { cause: error, evidence });
  }
}

/** Counts the rows of an archive object. Returns the error if the object cannot be read; rejects with fatal errors. */
export async function countObjectRows(
  zip: Body,
  key: string,
  { exchange, runFolder, stop: { signal } }: Pick<DownloadContext, 'exchange' | 'runFolder' | 'stop'>,
): Promise<number | CryptodlError> {
  const spoolPath = join(runFolder, `${randomUUID()}.csv`);
  const { packing } = exchange.archive;
  const limits = { spoolPath, memoryBytes: BODY_MEMORY_BYTES, maxBytes: CSV_MAX_BYTES, signal };
  try {
    const csv = await packing.unpack(zip, packing.rowsName(key), limits);
    const chunks = csv.kind === 'file' ? createReadStream(csv.path) : [csv.bytes];
    let rows = 0;
    let last: number | undefined;
    for await (const chunk of chunks as AsyncIterable<Buffer>) {
      if (last === undefined && beginsWithHeader(chunk)) rows -= 1;
      last = chunk.at(-1) ?? last;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, at + 1)) rows += 1;
    }
    return last === undefined || last === NEWLINE ? rows : rows + 1;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CryptodlError && !error.fatal) return error;
    throw error;
  } finally {
    await rm(spoolPath, { force: true });
  }
}

function expectation(
  context: DownloadContext,
  object: SourceObject,
  ask: ((bypassCache: boolean) => Promise<string | undefined>) | undefined,
): Expectation {
  const format = context.exchange.archive.packing;
  const listed = { format, ...(object.bytes === undefined ? {} : { bytes: object.bytes }) };
  if (context.options.verify === 'none') return listed;
  const sha256 = ask === undefined ? {} : { sha256: ask };
  // An ETag of a multipart upload is no MD5: the sidecar decides.
  const md5 = md5OfEtag(object.etag);
  if (md5 === undefined) return { ...listed, ...sha256 };
  return context.options.verify === 'etag' ? { ...listed, md5 } : { ...listed, md5, ...sha256 };
}

/** The published digest. It is requested once, and again only to bypass caches or after a failed request. A malformed sidecar counts as none. */
function publishedOf(context: DownloadContext, object: SourceObject) {
  const { sidecar } = context.exchange.archive;
  if (sidecar === undefined) return undefined;
  const access = { fetch: context.fetch, options: context.options, signal: context.stop.signal };
  let last: Promise<string | undefined> | undefined;
  return {
    ask: (bypassCache: boolean): Promise<string | undefined> => {
      if (last === undefined || bypassCache) {
        const asked = publishedDigest(access, sidecar, object.key, bypassCache);
        last = asked;
        // After a failed request, the next attempt requests the digest again.
        asked.catch(() => {
          if (last === asked) last = undefined;
        });
      }
      return last;
    },
    /** The digest of the last request; undefined if none was made or the archive has none. */
    last: () => last,
  };
}

/**
 * The ETag and time that distinguish this revision from the next. Those of the listing come first, because the next plan compares with the
 * listing, and a mirror may give its objects other ETags than the listing has. But a body that differs in size from the listing is another
 * revision: a cache had an older one, or the object was replaced after the listing.
 */
function revisionOf(object: SourceObject, response: FetchResponse): { etag?: string; lastModified?: string } {
  const isListed = object.bytes === undefined || object.bytes === bodySize(response.body);
  const listed = isListed ? object : undefined;
  const etag = listed?.etag ?? response.headers['etag']?.replace(/^W\//, '').replaceAll('"', '');
  const lastModified = listed?.lastModified ?? response.headers['last-modified'];
  return {
    ...(etag !== undefined && isLabel(etag) ? { etag } : {}),
    ...(lastModified !== undefined && isLabel(lastModified) ? { lastModified } : {}),
  };
}

/**
 * Removes the spool files of an object that was written or refused, and empties its bodies: while other jobs wait, p-queue keeps a hundred
 * finished jobs, and with them the objects that they received and wrote.
 */
export async function releaseBodies(received: { body: Body; csv: Body }): Promise<void> {
  const bodies = [received.body, received.csv];
  received.body = EMPTY;
  received.csv = EMPTY;
  for (const body of bodies) if (body.kind === 'file') await rm(body.path, { force: true });
}
