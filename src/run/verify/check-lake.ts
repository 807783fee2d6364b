/** Checks each series of a lake. In mode `fix`, also fixes the findings. */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { tempPath } from '../../files/temp-files.js';
import { backingOf, withoutConflict } from '../../files/backing.js';
import { refuseLinkedFolders } from '../../lake/layout.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { mapOrdered } from '../../model/in-order.js';
import { checkSeries, type CheckContext, type SeriesCheck } from './check-series.js';
import { NOT_IN_MANIFEST, asRegular, linkFinding, withRemedy, type LakeFinding } from './lake-finding.js';
import { asRecent, evidenceOf, fixSeries, separateRecent } from './fix-findings.js';
import { seriesInFolder, walkLake, type SeriesFolder, type LoosePath } from '../../lake/walk-lake.js';
import { createEngine } from '../../convert/duckdb.js';
import type { HeldSelection } from '../../plan/select/held-series.js';
import type { Session } from '../session/session.js';
import { seriesName } from '../../model/task.js';

export interface LakeCheck {
  readonly findings: readonly LakeFinding[];
  /** Undefined for a file or link that belongs to no series. */
  readonly check?: SeriesCheck;
}

const SERIES_AT_ONCE = 4;

/**
 * Yields the checks of series, files and links in path order. Rejects with `locked`: without `fix`, if a series has findings while a run
 * writes the lake; with `fix`, if another run has taken over the lake.
 */
export async function* checkLake(
  session: Session<'deep'>,
  { selection, fix }: { readonly selection: HeldSelection; readonly fix: boolean },
): AsyncGenerator<LakeCheck> {
  const { paths, exchange, options, stop } = session;
  await refuseLinkedFolders(paths);
  // A check without --fix must not write into the lake.
  const tempFolder = tempPath(session.tempFolder, 'verify');
  const engine = createEngine({ tempFolder, signal: stop.signal });
  try {
    const context = { session, fix, engine: options.deep ? engine : undefined, format: selection.format };
    const found = selected(walkLake(paths.root, exchange), selection);
    yield* mapOrdered(found, SERIES_AT_ONCE, (one) => {
      stop.signal.throwIfAborted();
      return one.kind === 'series' ? checkOneSeries(context, one) : checkLoosePath(context, one);
    });
  } finally {
    engine.close();
    await rm(tempFolder, { recursive: true, force: true });
  }
}

async function* selected(all: ReturnType<typeof walkLake>, { names, isWhole }: HeldSelection) {
  for await (const one of all)
    if (one.kind === 'series' ? names?.has(seriesName(one.series)) !== false : isWhole) yield one;
}

/** Checks a series, and again after each change by another writer. Then releases the files that the check has read. */
async function checkOneSeries(context: CheckContext, folder: SeriesFolder): Promise<LakeCheck> {
  const { paths } = context.session;
  let check: SeriesCheck | undefined;
  try {
    const checked = await withoutConflict(
      () => checkAndFix(context, folder),
      () => backingOf(paths.root)?.reopenSeries(folder.path),
    );
    check = checked.check;
    return checked;
  } finally {
    const zips = check?.inspected.manifest.zip.files().map((file) => join(paths.root, dirname(file)));
    backingOf(paths.root)?.release([folder.path, ...new Set(zips)]);
  }
}

async function checkAndFix(context: CheckContext, folder: SeriesFolder): Promise<LakeCheck> {
  const { session, fix } = context;
  const { paths } = session;
  const backing = backingOf(paths.root);
  let check = await checkSeries(context, await seriesInFolder(paths.root, folder));
  if (check.findings.length > 0) {
    if (!fix) await refuseIfLocked(paths.internal);
    await backing?.reopenSeries(folder.path);
    // A run may have written since the folder was read. The lock of a fix prevents this, but a lake in a bucket has no lock.
    if (backing !== undefined || !fix)
      check = await checkSeries(context, await seriesInFolder(paths.root, folder));
  }
  const { settled, recent } = separateRecent(paths.root, check);
  if (!fix) return { check: settled, findings: [...settled.findings.map(withRemedy), ...recent] };
  await session.lock?.confirm();
  const fixed = await fixSeries(session, settled);
  // A fix may move files without a change of the manifest. Also then, this call begins to publish the series.
  if (settled.findings.length > 0) await backing?.changeManifest(folder.path, () => Promise.resolve());
  await backing?.published(folder.path);
  return { check: settled, findings: [...fixed, ...recent] };
}

async function checkLoosePath({ session, fix }: CheckContext, { kind, path }: LoosePath): Promise<LakeCheck> {
  const { root } = session.paths;
  if (kind === 'link') return { findings: [withRemedy(linkFinding(path))] };
  const finding = await asRegular(root, { kind: 'unlisted', path, text: NOT_IN_MANIFEST });
  const recent = asRecent(root, finding);
  if (recent !== undefined) return { findings: [recent] };
  if (!fix || finding.kind !== 'unlisted') return { findings: [withRemedy(finding)] };
  await session.lock?.confirm();
  const kept = await evidenceOf(session, finding);
  if (kept === undefined) return { findings: [{ ...finding, left: 'nothing-known' }] };
  return { findings: [{ ...finding, done: `kept in ${kept}` }] };
}
