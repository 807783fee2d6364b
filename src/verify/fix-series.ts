/** `verify --fix`: moves damaged files and manifest lines into the quarantine and records their objects, so that `repair` fetches them. */
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { moveToQuarantine, quarantineLines, rewriteManifest } from '../lake/quarantine.js';
import type { LakePaths } from '../lake/layout.js';
import { appendManifest, applyLine } from '../lake/manifest.js';
import type { DroppedLine, ObjectLine } from '../lake/manifest-line.js';
import { knownSettings } from '../lake/settings.js';
import type { ObjectKeys } from '../lake/check-manifest-line.js';
import { inspectManifest } from '../lake/inspect-manifest.js';
import { publishAll } from '../lake/publish.js';
import { errnoOf } from '../model/errors.js';
import { FORMATS } from '../model/task.js';
import type { Format, Settings } from '../model/task.js';
import { shownPath } from '../text/printable.js';
import { UNREADABLE } from './check-file.js';
import type { FileReader, Footer } from './check-file.js';
import type { SeriesCheck } from './check-series.js';
import type { LakeFinding } from './lake-finding.js';
import { droppedLines, keyInText, keysIn, periodTextsOf, settingsOfFile } from './lost-objects.js';
import type { SeriesContext } from './lost-objects.js';
import type { Source } from '../source/source.js';

export interface FixContext {
  readonly venue: Pick<Source, 'archive'>;
  readonly paths: LakePaths;
  readonly reader: FileReader;
  readonly nowMs: number;
}

export interface FixedSeries {
  /** With `done` for a fix, and with `left` for a remaining step. */
  readonly findings: readonly LakeFinding[];
  /** Objects that the manifest no longer holds. */
  readonly dropped: readonly DroppedLine[];
}

/** Fixes the findings of a series. The caller must hold the lake's lock. */
export async function fixSeries(
  context: FixContext,
  lost: SeriesContext,
  check: SeriesCheck,
): Promise<FixedSeries> {
  const findings: LakeFinding[] = [];
  const dropped = objectsOfLines(lost, check, context.nowMs);
  const lines = await fixLines(context, check, dropped);
  for (const finding of check.findings) {
    if (finding.kind === 'line-damaged') {
      findings.push({ ...finding, ...lines });
      continue;
    }
    const fixed = await fixFile(context, lost, check, finding);
    findings.push(fixed.finding);
    dropped.push(...fixed.dropped);
  }
  return { findings, dropped };
}

/** The objects that `fixSeries` would drop. Writes nothing. */
export async function objectsLost(
  context: Pick<FixContext, 'reader' | 'nowMs' | 'paths'>,
  lost: SeriesContext,
  check: SeriesCheck,
): Promise<DroppedLine[]> {
  const dropped = objectsOfLines(lost, check, context.nowMs);
  for (const { kind, path, format } of check.findings) {
    if (format === undefined || !QUARANTINED.has(kind)) continue;
    if ((await adoptable(context.reader, check, { kind, path, format })) !== undefined) continue;
    const file = join(context.paths.root, path);
    dropped.push(...(await objectsOfFile(context, lost, check, { file, path, format })));
  }
  return dropped;
}

/** The objects that damaged manifest lines name, where their key is still readable. */
function objectsOfLines(lost: SeriesContext, { inspected }: SeriesCheck, nowMs: number): DroppedLine[] {
  const at = new Date(nowMs).toISOString();
  return inspected.damaged.flatMap(({ text, isWhole }) => {
    const key = isWhole === true ? undefined : keyInText(lost, text);
    const format = formatInText(text);
    const how = { held: inspected.manifest[format], format, settings: settingsInText(text), at };
    return key === undefined ? [] : droppedLines(lost, [key], how);
  });
}

async function fixLines(
  { paths, nowMs }: FixContext,
  { folder, inspected, broken }: SeriesCheck,
  dropped: readonly DroppedLine[],
): Promise<Pick<LakeFinding, 'done' | 'left'>> {
  const { damaged, sound } = inspected;
  if (damaged.length === 0) return {};
  const withoutLineFeed = damaged.filter(({ isWhole }) => isWhole === true).map(({ text }) => text);
  const unreadable = damaged.filter(({ isWhole }) => isWhole !== true);
  const cause = `manifest-damaged: lines ${unreadable.map(({ number }) => number).join(', ')} of the manifest cannot be read`;
  const kept =
    unreadable.length === 0
      ? undefined
      : await quarantineLines(paths, folder.path, {
          lines: unreadable.map(({ text }) => text),
          cause,
          nowMs,
        });
  const added = dropped.map((line) => JSON.stringify(line));
  await rewriteManifest(paths, folder.path, [...sound, ...withoutLineFeed, ...added]);
  const done = kept === undefined ? 'added the missing line feed' : `kept in ${shownPath(kept)}`;
  return dropped.length > 0 || broken.length > 0 ? { done, left: 'repair' } : { done };
}

function formatInText(text: string): Format {
  return FORMATS.find((format) => text.includes(`"format":"${format}"`)) ?? 'parquet';
}

function settingsInText(text: string): Settings | undefined {
  const [, found] = /"settings":(\{[^{}]*\})/.exec(text) ?? [];
  try {
    return found === undefined ? undefined : knownSettings(JSON.parse(found));
  } catch {
    return undefined;
  }
}

const QUARANTINED: ReadonlySet<LakeFinding['kind']> = new Set(['damaged', 'unlisted', 'stranger']);

async function fixFile(
  context: FixContext,
  lost: SeriesContext,
  check: SeriesCheck,
  finding: LakeFinding,
): Promise<{ finding: LakeFinding; dropped: readonly DroppedLine[] }> {
  const { kind, path, format, text } = finding;
  const dropped: DroppedLine[] = [];
  if (kind === 'missing') return { finding: { ...finding, left: 'repair' }, dropped };
  if (kind === 'no-manifest')
    return { finding: { ...finding, done: 'each of its files is listed separately' }, dropped };
  if (kind === 'sidecar') return { finding: await fixSidecar(context, check, finding), dropped };
  if (!QUARANTINED.has(kind)) return { finding: { ...finding, left: 'nothing-known' }, dropped };
  const adopted = await adoptable(context.reader, check, finding);
  if (typeof adopted === 'string') {
    const unreadable = `the file cannot be read (${adopted})`;
    return {
      finding: { ...finding, kind: 'unreadable', text: unreadable, left: 'nothing-known' },
      dropped,
    };
  }
  if (adopted !== undefined) {
    await appendManifest(check.folder.path, adopted);
    // repair plans with this manifest.
    for (const line of adopted) applyLine(check.inspected.manifest, line);
    return { finding: { ...finding, done: 'adopted with the objects that its footer names' }, dropped };
  }
  const file = join(context.paths.root, path);
  if (format !== undefined)
    dropped.push(...(await objectsOfFile(context, lost, check, { file, path, format })));
  // The manifest comes first: after a crash in between, the file is still there and the next --fix finds it again.
  await recordDropped(check.folder.path, context.venue.archive, dropped);
  const kept = await moveToQuarantine(context.paths, file, `${kind}: ${text}`, context.nowMs);
  const done = kept === undefined ? 'the file no longer exists' : `kept in ${shownPath(kept)}`;
  const periods =
    finding.periods ??
    periodTextsOf(
      lost,
      dropped.map(({ key }) => key),
    );
  const left = kind === 'damaged' || dropped.length > 0 ? { left: 'repair' as const } : {};
  return { finding: { ...finding, done, ...(periods.length > 0 ? { periods } : {}), ...left }, dropped };
}

/**
 * The manifest lines of an unlisted Parquet file in the folder of the series; undefined if it cannot be adopted, and the errno if
 * the file system refuses to read it.
 */
async function adoptable(
  reader: FileReader,
  { folder, inspected }: SeriesCheck,
  { kind, path, format }: Pick<LakeFinding, 'kind' | 'path' | 'format'>,
): Promise<readonly ObjectLine[] | string | undefined> {
  if (kind !== 'unlisted' || format !== 'parquet') return undefined;
  const { series, path: folderPath } = folder;
  const held = inspected.manifest.parquet;
  try {
    const siblings = folder.files;
    return await reader.provenLines({ series, folder: folderPath, file: basename(path), siblings, held });
  } catch (error) {
    const errno = errnoOf(error);
    if (!UNREADABLE.has(errno)) throw error;
    return errno;
  }
}

/** Writes the sidecar again from the digest in the manifest. */
async function fixSidecar(
  { venue, paths, nowMs }: FixContext,
  { inspected }: SeriesCheck,
  finding: LakeFinding,
): Promise<LakeFinding> {
  const { path, text } = finding;
  const { sidecar } = venue.archive;
  const line = inspected.manifest.zip.lines().find(({ file }) => file + (sidecar?.suffix ?? '') === path);
  if (line === undefined || sidecar === undefined) return { ...finding, left: 'nothing-known' };
  const target = join(paths.root, path);
  const kept = await moveToQuarantine(paths, target, `sidecar: ${text}`, nowMs);
  const staged = join(paths.staging, `${randomUUID()}.partial`);
  await mkdir(paths.staging, { recursive: true });
  await mkdir(dirname(target), { recursive: true });
  await writeFile(staged, sidecar.textOf(line.key, line.sha256));
  await publishAll([{ staged, target }]);
  const evidence = kept === undefined ? '' : `; the old one is kept in ${shownPath(kept)}`;
  return { ...finding, done: `written again${evidence}` };
}

/** Objects in the file that no manifest line holds. */
async function objectsOfFile(
  { reader, nowMs }: Pick<FixContext, 'reader' | 'nowMs'>,
  lost: SeriesContext,
  { inspected }: SeriesCheck,
  { file, path, format }: { file: string; path: string; format: Format },
): Promise<DroppedLine[]> {
  const footer = format === 'parquet' ? await footerOf(reader, file) : undefined;
  const provenance = footer?.provenance;
  const held = inspected.manifest[format];
  const isNamed = held.lines().some((line) => line.file === path || path.endsWith(`/${line.file}`));
  // The manifest lines of the file name its objects. Only its provenance can name more objects.
  if (isNamed && provenance === undefined) return [];
  const settings = settingsOfFile(lost, path, {
    format,
    ...(provenance === undefined ? {} : { provenance }),
    ...(footer === undefined ? {} : { columns: footer.columns }),
  });
  const at = new Date(nowMs).toISOString();
  return droppedLines(lost, keysIn(lost, path, provenance), { held, format, settings, at });
}

/** Appends the lines that the manifest does not have yet. */
async function recordDropped(
  seriesFolder: string,
  archive: ObjectKeys,
  lines: readonly DroppedLine[],
): Promise<void> {
  if (lines.length === 0) return;
  const { dropped } = await inspectManifest(seriesFolder, archive);
  const isRecorded = (line: DroppedLine): boolean =>
    dropped.some(
      ({ key, format, settings }) =>
        key === line.key && format === line.format && (settings !== undefined || line.settings === undefined),
    );
  const added = lines.filter((line) => !isRecorded(line));
  if (added.length > 0) await appendManifest(seriesFolder, added);
}

async function footerOf(reader: FileReader, file: string): Promise<Footer | undefined> {
  try {
    return await reader.footer(file);
  } catch {
    return undefined;
  }
}
