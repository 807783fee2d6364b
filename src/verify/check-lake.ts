/** Checks each series of a lake. In mode `fix`, also fixes the findings. */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { tempPath } from '../files/temp-files.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import { backingOf } from '../lake/backing.js';
import { refuseLinkedFolders } from '../lake/layout.js';
import { refuseIfLocked } from '../lake/lock.js';
import { mapOrdered } from '../queue/in-order.js';
import { shownPath } from '../text/printable.js';
import { checkSeries, pathInLake } from './check-series.js';
import type { CheckContext, SeriesCheck } from './check-series.js';
import { NOT_IN_MANIFEST, REMEDIES, asRegular, linkFinding } from './lake-finding.js';
import type { LakeFinding, LakeFindingKind } from './lake-finding.js';
import { fixSeries } from './fix-series.js';
import { listSeries, walkLake } from '../lake/walk-lake.js';
import type { LoosePath, SeriesFolder } from '../lake/walk-lake.js';
import { createEngine } from '../convert/duckdb.js';
import type { HeldSelection } from '../select/held-series.js';
import { seriesName } from '../model/task.js';
import type { Session } from '../download/session.js';
import { withoutConflict } from '../write/partition-guards.js';
import { dayOf, parsePeriod } from '../model/calendar.js';
import type { Manifest } from '../lake/manifest.js';
import { isFromRest } from '../lake/manifest-line.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { CryptodlError } from '../model/errors.js';
import { listSeries as listArchived } from '../plan/series-listing.js';
import { FORMATS } from '../model/task.js';
import type { ArchiveObject, Cadence, Series } from '../model/task.js';
import { publishedDigest } from '../source/archive-client.js';

interface CheckRequest {
  readonly selection: HeldSelection;
  /** Whether to change the lake, which needs the lock. */
  readonly fix: boolean;
}

export interface LakeCheck {
  readonly findings: readonly LakeFinding[];
  /** Undefined for a file or link that belongs to no series. */
  readonly check?: SeriesCheck;
}

const SERIES_AT_ONCE = 4;

/**
 * Yields in path order; checks a few series at a time. Rejects with `locked` if a series has findings and another run writes to the
 * lake, and with `fix` if another run has taken over the lake.
 */
export async function* checkLake(session: Session, request: CheckRequest): AsyncGenerator<LakeCheck> {
  const { paths, venue, stop } = session;
  await refuseLinkedFolders(paths);
  // A check without --fix must not write into the lake.
  const tempFolder = tempPath(session.tempFolder, 'verify');
  const engine = createEngine({ tempFolder, signal: stop.signal });
  try {
    const { format } = request.selection;
    const context = { root: paths.root, venue, engine: session.options.deep ? engine : undefined, format };
    const found = chosen(walkLake(paths.root, venue), request.selection);
    yield* mapOrdered(found, SERIES_AT_ONCE, (one) => {
      stop.signal.throwIfAborted();
      return one.kind === 'series'
        ? checkOneSeries(session, request, context, one)
        : checkLoosePath(session, request, one);
    });
  } finally {
    engine.close();
    await rm(tempFolder, { recursive: true, force: true });
  }
}

async function* chosen(
  all: AsyncGenerator<SeriesFolder | LoosePath>,
  selection: HeldSelection,
): AsyncGenerator<SeriesFolder | LoosePath> {
  for await (const one of all)
    if (one.kind === 'series' ? selection.names?.has(seriesName(one.series)) !== false : selection.isWhole)
      yield one;
}

async function checkOneSeries(
  session: Session,
  request: CheckRequest,
  context: CheckContext,
  folder: SeriesFolder,
): Promise<LakeCheck> {
  const { paths } = session;
  let check: SeriesCheck | undefined;
  try {
    const checked = await withoutConflict(
      () => checkAndFix(session, request, context, folder),
      () => backingOf(paths.root)?.reopenSeries(folder.path),
    );
    check = checked.check;
    return checked;
  } finally {
    const zips = check?.inspected.manifest.zip.files().map((file) => join(paths.root, dirname(file)));
    await backingOf(paths.root)?.release([folder.path, ...new Set(zips)]);
  }
}

async function checkAndFix(
  session: Session,
  request: CheckRequest,
  context: CheckContext,
  folder: SeriesFolder,
): Promise<LakeCheck> {
  const { paths, venue } = session;
  const isFixed = request.fix;
  const backing = backingOf(paths.root);
  let check = await checkSeries(context, await listSeries(paths.root, folder));
  if (check.findings.length > 0) {
    if (!isFixed) await refuseIfLocked(paths.internal, session.clock);
    // A run may have written since the folder was read. The lock of a fix prevents it, but a lake in a bucket has none.
    await backing?.reopenSeries(folder.path);
    if (backing !== undefined || !isFixed)
      check = await checkSeries(context, await listSeries(paths.root, folder));
  }
  const upstream = session.options.upstream
    ? await upstreamFindings(session, folder.series, check.inspected.manifest)
    : [];
  const { settled, recent } = separateRecent(paths.root, check);
  const others = [...recent, ...upstream.map(withRemedy)];
  if (!isFixed) return { check: settled, findings: [...settled.findings.map(withRemedy), ...others] };
  await session.lock?.confirm();
  const fixed = await fixSeries({ venue, paths, nowMs: session.clock.now() }, settled);
  // A fix may move files without a change of the manifest.
  if (settled.findings.length > 0) await backing?.changeManifest(folder.path, () => Promise.resolve());
  await backing?.published(folder.path);
  return { check: settled, findings: [...fixed, ...others] };
}

// Files of a lake in a bucket that were changed a short time ago. A bucket has no lock: the run that has put such a file may not have
// put its manifest yet.

/** Longer than a run waits between the put of a file and that of its manifest, with all attempts. */
const SETTLED_MS = 15 * 60_000;
/** Findings about a file that a manifest may name soon. */
const OF_FILES: ReadonlySet<LakeFindingKind> = new Set(['damaged', 'unlisted', 'sidecar']);

/** The finding with a remark, or undefined if its file was not changed in the last minutes. */
function asRecent(root: string, finding: LakeFinding): LakeFinding | undefined {
  // The lock of a local lake keeps other commands away.
  const ageMs = backingOf(root)?.ageMs(join(root, finding.path)) ?? Number.POSITIVE_INFINITY;
  if (!OF_FILES.has(finding.kind) || ageMs > SETTLED_MS) return undefined;
  const text = `${finding.text}; changed in the last 15 minutes, so another run may be writing it: try again later`;
  return { ...finding, text, left: 'fix' };
}

/** Divides the findings of a series. The objects in recent files do not count as lost. */
function separateRecent(
  root: string,
  check: SeriesCheck,
): { readonly settled: SeriesCheck; readonly recent: readonly LakeFinding[] } {
  const recent = check.findings.flatMap((finding) => asRecent(root, finding) ?? []);
  const paths = new Set(recent.map(({ path }) => path));
  const findings = check.findings.filter(({ kind, path }) => !OF_FILES.has(kind) || !paths.has(path));
  const broken = check.broken.filter((line) => !paths.has(pathInLake(check, line)));
  return { settled: { ...check, findings, broken }, recent };
}

function withRemedy(finding: LakeFinding): LakeFinding {
  return { ...finding, left: REMEDIES[finding.kind] };
}

async function checkLoosePath(
  { paths, clock, lock }: Pick<Session, 'clock' | 'lock' | 'paths'>,
  { fix }: CheckRequest,
  { kind, path }: LoosePath,
): Promise<LakeCheck> {
  if (kind === 'link') return { findings: [withRemedy(linkFinding(path))] };
  const finding = await asRegular(paths.root, { kind: 'unlisted', path, text: NOT_IN_MANIFEST });
  const recent = asRecent(paths.root, finding);
  if (recent !== undefined) return { findings: [recent] };
  if (!fix || finding.kind !== 'unlisted') return { findings: [withRemedy(finding)] };
  await lock?.confirm();
  const kept = await moveToQuarantine(
    paths,
    join(paths.root, path),
    `unlisted: ${finding.text}`,
    clock.now(),
  );
  if (kept === undefined) return { findings: [{ ...finding, left: 'nothing-known' }] };
  return { findings: [{ ...finding, done: `kept in ${shownPath(kept)}` }] };
}

// `verify --upstream`: compares held objects with the archive's present listing and with the digests in its sidecars.

const SIDECARS_AT_ONCE = 16;

/** The parts of a session that reach the archive. */
type Upstream = Pick<Session, 'fetch' | 'listing' | 'nowMs' | 'options' | 'stop' | 'venue'>;

/** Compares the held objects of a series, except rows from REST and rows that the program made. Rejects when the listing or a sidecar is unavailable. */
async function upstreamFindings(
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
  const { objects, copiedAt } = await listArchived(listing, venue, series, cadence, { from, to, today });
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
