/** `verify --upstream`: compares held objects with the archive's present listing and with the digests in its sidecars. */
import type { Session } from '../download/session.js';
import { dayOf, parsePeriod } from '../model/calendar.js';
import type { Manifest } from '../lake/manifest.js';
import { isFromRest } from '../lake/manifest-line.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { mapOrdered } from '../queue/in-order.js';
import { CryptodlError } from '../model/errors.js';
import { listSeries } from '../plan/series-listing.js';
import { FORMATS } from '../model/task.js';
import type { ArchiveObject, Cadence, Series } from '../model/task.js';
import type { LakeFinding } from './lake-finding.js';
import { publishedDigest } from '../source/archive-client.js';

const SIDECARS_AT_ONCE = 16;

/** The parts of a session that reach the archive. */
type Upstream = Pick<Session, 'fetch' | 'listing' | 'nowMs' | 'options' | 'stop' | 'venue'>;

/** Compares the held objects of a series, except rows from REST and rows that the program made. Rejects when the listing or a sidecar is unavailable. */
export async function upstreamFindings(
  session: Upstream,
  series: Series,
  manifest: Manifest,
): Promise<LakeFinding[]> {
  // The same object in two formats is one object.
  const lines = new Map<string, ObjectLine>();
  for (const format of FORMATS)
    for (const line of manifest[format].lines())
      if (!isFromRest(line) && line.verified !== 'lake') lines.set(line.key, line);
  const findings: LakeFinding[] = [];
  for (const cadence of ['daily', 'monthly'] as const) {
    const held = [...lines.values()].filter((line) => line.cadence === cadence);
    if (held.length === 0) continue;
    const listed = await listedOf(session, series, cadence, held);
    const compare = (line: ObjectLine): Promise<LakeFinding | undefined> =>
      findingOf(session, series, line, listed.get(line.key));
    for await (const finding of mapOrdered(held, SIDECARS_AT_ONCE, compare))
      if (finding !== undefined) findings.push(finding);
  }
  return findings;
}

async function listedOf(
  { listing, venue, nowMs }: Upstream,
  series: Series,
  cadence: Cadence,
  held: readonly ObjectLine[],
): Promise<Map<string, ArchiveObject>> {
  const periods = held.flatMap((line) => parsePeriod(line.cadence, line.period) ?? []);
  const from = Math.min(...periods.map((period) => period.from));
  const to = Math.max(...periods.map((period) => period.to));
  const today = dayOf(nowMs, venue);
  const { objects, copiedAt } = await listSeries(listing, venue, series, cadence, { from, to, today });
  if (copiedAt !== undefined) {
    throw new CryptodlError(
      'unreachable',
      'the listing does not answer, and the cached listing may be out of date',
      { hint: 'try again later, or leave --upstream out' },
    );
  }
  return new Map([...objects.values()].map((object) => [object.key, object]));
}

async function findingOf(
  session: Upstream,
  series: Series,
  line: ObjectLine,
  listed: ArchiveObject | undefined,
): Promise<LakeFinding | undefined> {
  const about = { path: line.key, series, format: line.settings.format, periods: [line.period] };
  if (listed === undefined) return { kind: 'withdrawn', ...about, text: 'the archive no longer lists it' };
  const isKnown = line.shorter !== undefined && revisionText(line.shorter, listed) === undefined;
  const revised = isKnown ? undefined : revisionText(line, listed);
  if (revised !== undefined) return { kind: 'revised', ...about, text: revised };
  if (isKnown) return undefined;
  const { fetch, options, stop, venue } = session;
  const { sidecar } = venue.archive;
  if (sidecar === undefined) return undefined;
  const digest = await publishedDigest({ fetch, options, signal: stop.signal }, sidecar, line.key);
  if (digest === undefined || digest === line.sha256 || digest === line.staleSidecar) return undefined;
  return {
    kind: 'stale-digest',
    ...about,
    text: `the sidecar names SHA-256 ${digest.slice(0, 12)}…, the held object has ${line.sha256.slice(0, 12)}…; the listing shows no other ETag or size`,
  };
}

function revisionText(line: Pick<ObjectLine, 'etag' | 'bytes'>, listed: ArchiveObject): string | undefined {
  const hasTags = (line.etag ?? '') !== '' && (listed.etag ?? '') !== '';
  if (hasTags && line.etag !== listed.etag)
    return `the archive has ETag ${listed.etag ?? ''}, the lake has ${line.etag ?? ''}`;
  if (listed.bytes !== undefined && listed.bytes !== line.bytes)
    return `the archive has ${listed.bytes} bytes, the lake has ${line.bytes}`;
  return undefined;
}
