/** Checks each series of a lake. In mode `fix`, also fixes the findings. */
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dayOf } from '../model/calendar.js';
import { moveToQuarantine } from '../lake/quarantine.js';
import { publishBackedSeries, releaseBacked, reopenBackedSeries } from '../lake/backing.js';
import { refuseLinkedFolders } from '../lake/layout.js';
import { refuseIfLocked } from '../lake/lock.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import { mapOrdered } from '../queue/in-order.js';
import { shownPath } from '../text/printable.js';
import { provenLines } from './adopt-file.js';
import type { FileReader, RowsOf } from './check-file.js';
import { checkSeries } from './check-series.js';
import { asRecent, separateRecent } from './recent-files.js';
import type { CheckContext, SeriesCheck } from './check-series.js';
import type { LakeFinding } from './lake-finding.js';
import { asRegular, linkFinding, NOT_PART_OF_LAKE, REMEDIES } from './lake-finding.js';
import { fixSeries, objectsLost } from './fix-series.js';
import type { SeriesContext } from './lost-objects.js';
import { CryptodlError } from '../model/errors.js';
import { readSeriesAgain, walkLake } from '../lake/walk-lake.js';
import type { LoosePath, SeriesFolder } from '../lake/walk-lake.js';
import { findDataset } from '../source/venue.js';
import { createEngine } from '../convert/duckdb.js';
import type { Engine } from '../convert/duckdb.js';
import { readFooter } from '../write/footer.js';
import { inspectRows } from '../convert/inspect-rows.js';
import type { HeldSelection } from '../select/held-series.js';
import type { Session } from '../download/session.js';
import { upstreamFindings } from './check-upstream.js';

export interface CheckRequest {
  readonly selection: HeldSelection;
  readonly deep: boolean;
  readonly upstream: boolean;
  /** `look`: report only. `plan`: also list the objects that would be lost. `fix`: change the lake; needs the lock. */
  readonly mode: 'look' | 'plan' | 'fix';
}

export interface LakeCheck {
  readonly findings: readonly LakeFinding[];
  /** Objects that the manifest no longer holds, or in mode `plan` would no longer hold; empty in mode `look`. */
  readonly dropped: readonly DroppedLine[];
  /** Undefined for a file or link that belongs to no series. */
  readonly check?: SeriesCheck;
}

const SERIES_AT_ONCE = 4;
/** Attempts with a series in a bucket that another command changes. */
const MOST_ATTEMPTS = 3;

/**
 * Yields in path order; checks a few series at a time. Rejects with `locked` if a series has findings and another run writes to the
 * lake, and in mode `fix` if another run has taken over the lake.
 */
export async function* checkLake(session: Session, request: CheckRequest): AsyncGenerator<LakeCheck> {
  const { paths, venue, stop } = session;
  await refuseLinkedFolders(paths);
  // A check without --fix must not write into the lake, so DuckDB uses the temporary folder of the system.
  const tempFolder = join(tmpdir(), `cryptodl-verify-${randomUUID()}`);
  const engine = createEngine({ tempFolder, signal: stop.signal });
  try {
    const reader = readerOf(session, engine, request.deep);
    const found = chosen(walkLake(paths.root, venue), request.selection);
    yield* mapOrdered(found, SERIES_AT_ONCE, (one) => {
      stop.signal.throwIfAborted();
      return one.kind === 'series'
        ? checkOneSeries(session, request, reader, one)
        : checkLoosePath(session, request, one);
    });
  } finally {
    engine.close();
  }
}

async function* chosen(
  all: AsyncGenerator<SeriesFolder | LoosePath>,
  selection: HeldSelection,
): AsyncGenerator<SeriesFolder | LoosePath> {
  for await (const one of all)
    if (one.kind === 'series' ? selection.has(one.series) : selection.isWhole) yield one;
}

function readerOf(
  { venue, nowMs }: Pick<Session, 'nowMs' | 'venue'>,
  engine: Engine,
  deep: boolean,
): FileReader {
  const footer: FileReader['footer'] = async (path) => {
    const connection = await engine.session('small');
    try {
      return await readFooter(connection, path);
    } finally {
      connection.close();
    }
  };
  const rows = async ({ series, path, lines, columns }: RowsOf): Promise<readonly string[]> => {
    const spec = findDataset(venue, series.market, series.dataset);
    const settings = lines[0]?.settings;
    if (spec === undefined || settings === undefined) return [];
    const connection = await engine.session();
    try {
      return await inspectRows(connection, {
        path,
        spec,
        settings,
        interval: series.interval,
        lines,
        columns,
      });
    } finally {
      connection.close();
    }
  };
  const proven: FileReader['provenLines'] = (file) => provenLines(engine, { venue, nowMs }, file);
  return { footer, provenLines: proven, ...(deep ? { rows } : {}) };
}

async function checkOneSeries(
  session: Session,
  request: CheckRequest,
  reader: FileReader,
  folder: SeriesFolder,
): Promise<LakeCheck> {
  const { paths } = session;
  let check: SeriesCheck | undefined;
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const checked = await checkAndFix(session, request, reader, folder);
        check = checked.check;
        return checked;
      } catch (error) {
        const isConflict = error instanceof CryptodlError && error.code === 'lake-conflict';
        if (!isConflict || attempt === MOST_ATTEMPTS) throw error;
        await reopenBackedSeries(folder.path);
      }
    }
  } finally {
    const zips = check?.inspected.manifest.zip.files().map((file) => join(paths.root, dirname(file)));
    await releaseBacked(folder.path, ...new Set(zips));
  }
}

async function checkAndFix(
  session: Session,
  request: CheckRequest,
  reader: FileReader,
  folder: SeriesFolder,
): Promise<LakeCheck> {
  const { paths, venue } = session;
  const context: CheckContext = { root: paths.root, venue, reader, format: request.selection.format };
  const isFixed = request.mode === 'fix';
  let check = await checkSeries(context, folder);
  if (check.findings.length > 0) {
    if (!isFixed) await refuseIfLocked(paths.internal, session.clock);
    // A run may have written since the folder was read. The lock of a fix prevents it, but a lake in a bucket has none.
    if ((await reopenBackedSeries(folder.path)) || !isFixed)
      check = await checkSeries(context, await readSeriesAgain(paths.root, folder));
  }
  const upstream = request.upstream
    ? await upstreamFindings(session, folder.series, check.inspected.manifest)
    : [];
  const how = { venue: session.venue, paths, reader, nowMs: session.clock.now() };
  const lost = lostContext(session, folder);
  const { settled, recent } = separateRecent(paths.root, check);
  if (isFixed) {
    await session.lock?.confirm();
    const { findings, dropped } = await fixSeries(how, lost, settled);
    if (settled.findings.length > 0) await publishBackedSeries(folder.path);
    return { check: settled, dropped, findings: [...findings, ...recent, ...upstream.map(withRemedy)] };
  }
  const dropped = request.mode === 'plan' ? await objectsLost(how, lost, settled) : [];
  return {
    check: settled,
    dropped,
    findings: [...[...settled.findings, ...upstream].map(withRemedy), ...recent],
  };
}

function withRemedy(finding: LakeFinding): LakeFinding {
  return { ...finding, left: REMEDIES[finding.kind] };
}

function lostContext(
  { venue, nowMs }: Pick<Session, 'nowMs' | 'venue'>,
  { series }: Pick<SeriesFolder, 'series'>,
): SeriesContext {
  const spec = findDataset(venue, series.market, series.dataset);
  return { venue, series, spec, today: dayOf(nowMs, venue) };
}

async function checkLoosePath(
  { paths, clock, lock }: Pick<Session, 'clock' | 'lock' | 'paths'>,
  { mode }: CheckRequest,
  { kind, path }: LoosePath,
): Promise<LakeCheck> {
  if (kind === 'link') return { findings: [withRemedy(linkFinding(path))], dropped: [] };
  const finding = await asRegular(paths.root, { kind: 'stranger', path, text: NOT_PART_OF_LAKE });
  const recent = asRecent(paths.root, finding);
  if (recent !== undefined) return { findings: [recent], dropped: [] };
  if (mode !== 'fix' || finding.kind !== 'stranger') return { findings: [withRemedy(finding)], dropped: [] };
  await lock?.confirm();
  const kept = await moveToQuarantine(
    paths,
    join(paths.root, path),
    `stranger: ${finding.text}`,
    clock.now(),
  );
  if (kept === undefined) return { findings: [{ ...finding, left: 'nothing-known' }], dropped: [] };
  return { findings: [{ ...finding, done: `kept in ${shownPath(kept)}` }], dropped: [] };
}
