/** `verify --fix` moves files and manifest lines that prove nothing to the quarantine, and drops the objects of damaged files. */
import { join } from 'node:path';
import { backingOf } from '../../files/backing.js';
import { moveToQuarantine, quarantineLines, rewriteManifest } from '../../lake/quarantine.js';
import { droppedLine, linesOfRemoved } from '../../lake/undone-commits.js';
import { FORMATS } from '../../model/task.js';
import { shownPath } from '../../text/printable.js';
import type { Session } from '../session/session.js';
import { pathInLake, type SeriesCheck } from './check-series.js';
import type { LakeFinding, LakeFindingKind } from './lake-finding.js';
import { appendManifest } from '../../lake/manifests.js';

/** Fixes the findings of a series: each has `done` for a fix, and `left` for a remaining step. The caller must hold the lake's lock. */
export async function fixSeries(session: Session, check: SeriesCheck): Promise<LakeFinding[]> {
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
export async function evidenceOf(
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
export function asRecent(root: string, finding: LakeFinding): LakeFinding | undefined {
  // No file of a local lake is recent, because the lock keeps other runs away.
  const ageMs = backingOf(root)?.ageMs(join(root, finding.path)) ?? Number.POSITIVE_INFINITY;
  if (!FILE_FINDINGS.has(finding.kind) || ageMs > SETTLED_MS) return undefined;
  const text = `${finding.text}; changed in the last 15 minutes, so another run may be writing it: try again later`;
  return { ...finding, text, left: 'fix' };
}

/** Takes the findings about recent files out of a check. The lines of these files do not count as broken. */
export function separateRecent(
  root: string,
  check: SeriesCheck,
): { readonly settled: SeriesCheck; readonly recent: readonly LakeFinding[] } {
  const recent = check.findings.flatMap((finding) => asRecent(root, finding) ?? []);
  const paths = new Set(recent.map(({ path }) => path));
  const findings = check.findings.filter(({ kind, path }) => !FILE_FINDINGS.has(kind) || !paths.has(path));
  const broken = check.broken.filter((line) => !paths.has(pathInLake(check, line)));
  return { settled: { ...check, findings, broken }, recent };
}
