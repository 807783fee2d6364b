/** Checks each series of a lake. In mode `fix`, also fixes the findings. */
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { tempPath } from '../../files/temp-files.js';
import { backingOf, withoutConflict } from '../../files/backing.js';
import { refuseLinkedFolders } from '../../lake/layout.js';
import { refuseIfLocked } from '../../lake/lock.js';
import { mapOrdered } from '../../model/in-order.js';
import { checkSeries, pathInLake, type CheckContext, type SeriesCheck } from './check-series.js';
import { NOT_IN_MANIFEST, asRegular, linkFinding, withRemedy } from './lake-finding.js';
import type { LakeFinding, LakeFindingKind } from './lake-finding.js';
import { seriesInFolder, walkLake, type SeriesFolder, type LoosePath } from '../../lake/walk-lake.js';
import { createEngine } from '../../convert/duckdb.js';
import type { HeldSelection } from '../../plan/select/held-series.js';
import type { Session } from '../session/session.js';
import { seriesName, FORMATS } from '../../model/task.js';
import { moveToQuarantine, quarantineLines, rewriteManifest } from '../../lake/quarantine.js';
import { droppedLine, linesOfRemoved } from '../../lake/undone-commits.js';
import { shownPath } from '../../text/printable.js';
import { appendManifest } from '../../lake/manifests.js';

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

// `verify --fix` moves files and manifest lines that prove nothing to the quarantine, and drops the objects of damaged files.

/** Fixes the findings of a series: each has `done` for a fix, and `left` for a remaining step. The caller must hold the lake's lock. */
async function fixSeries(session: Session, check: SeriesCheck): Promise<LakeFinding[]> {
  const lines = await fixLines(session, check);
  const findings: LakeFinding[] = [];
  for (const finding of check.findings)
    findings.push(
      finding.kind === 'line-damaged' ? { ...finding, ...lines } : await fixFile(session, check, finding),
    );
  return findings;
}

async function fixLines(
  { paths, clock }: Session,
  { folder, inspected }: SeriesCheck,
): Promise<Pick<LakeFinding, 'done'>> {
  const { damaged, sound } = inspected;
  if (damaged.length === 0) return {};
  const cause = `manifest-damaged: lines ${damaged.map(({ number }) => number).join(', ')} of the manifest cannot be read`;
  const lines = damaged.map(({ text }) => text);
  const kept = await quarantineLines(paths, folder.path, { lines, cause, nowMs: clock.now() });
  await rewriteManifest(paths, folder.path, sound);
  return { done: `kept in ${shownPath(kept)}` };
}

async function fixFile(session: Session, check: SeriesCheck, finding: LakeFinding): Promise<LakeFinding> {
  const { kind } = finding;
  if (kind === 'missing') return { ...finding, left: 'repair' };
  if (kind === 'unlisted') return quarantined(session, finding);
  if (kind !== 'damaged') return { ...finding, left: 'nothing-known' };
  // The manifest comes first: after a crash in between, no line names the file, and the next --fix moves it.
  await dropObjects(session, check, finding);
  return { ...(await quarantined(session, finding)), left: 'repair' };
}

async function quarantined(session: Session, finding: LakeFinding): Promise<LakeFinding> {
  const kept = await evidenceOf(session, finding);
  const done = kept === undefined ? 'the file no longer exists' : `kept in ${kept}`;
  return { ...finding, done };
}

/** Moves the file to the quarantine. Resolves with its new path, or with undefined if it does not exist. */
async function evidenceOf(
  { paths, clock }: Session,
  { kind, path, text }: LakeFinding,
): Promise<string | undefined> {
  const kept = await moveToQuarantine(paths, join(paths.root, path), `${kind}: ${text}`, clock.now());
  return kept && shownPath(kept);
}

/** Records that the lake no longer has the objects of a damaged file, so that `repair` fetches them. */
async function dropObjects({ clock }: Session, check: SeriesCheck, { path }: LakeFinding): Promise<void> {
  const at = new Date(clock.now()).toISOString();
  const lines = check.broken.filter((line) => pathInLake(check, line) === path);
  const files = new Set(lines.map(({ file }) => file));
  await appendManifest(check.folder.path, [
    ...FORMATS.flatMap((format) => linesOfRemoved(check.inspected.manifest[format], files, at)),
    ...lines.map((line) => ({ ...droppedLine(line, line.settings.format, at), settings: line.settings })),
  ]);
}

// Recent files: files of a lake in a bucket that were changed a short time ago. A bucket has no lock, so the run that has put such a file
// may not have put its manifest yet. No fix changes them.

/** Longer than the time from the put of a file to the put of its manifest, with all attempts. */
const SETTLED_MS = 15 * 60_000;
/** Findings about a file that a manifest may name soon. */
const FILE_FINDINGS: ReadonlySet<LakeFindingKind> = new Set(['damaged', 'unlisted']);

/** The finding with a remark; undefined if its file is not recent. */
function asRecent(root: string, finding: LakeFinding): LakeFinding | undefined {
  // No file of a local lake is recent, because the lock keeps other runs away.
  const ageMs = backingOf(root)?.ageMs(join(root, finding.path)) ?? Number.POSITIVE_INFINITY;
  if (!FILE_FINDINGS.has(finding.kind) || ageMs > SETTLED_MS) return undefined;
  const text = `${finding.text}; changed in the last 15 minutes, so another run may be writing it: try again later`;
  return { ...finding, text, left: 'fix' };
}

/** Takes the findings about recent files out of a check. The lines of these files do not count as broken. */
function separateRecent(
  root: string,
  check: SeriesCheck,
): { readonly settled: SeriesCheck; readonly recent: readonly LakeFinding[] } {
  const recent = check.findings.flatMap((finding) => asRecent(root, finding) ?? []);
  const paths = new Set(recent.map(({ path }) => path));
  const findings = check.findings.filter(({ kind, path }) => !FILE_FINDINGS.has(kind) || !paths.has(path));
  const broken = check.broken.filter((line) => !paths.has(pathInLake(check, line)));
  return { settled: { ...check, findings, broken }, recent };
}
