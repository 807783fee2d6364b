/** `verify --fix`: what is wrong is kept as evidence, and what it told of is remembered, so that `repair` asks for it. */
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setAside, keepLines, rewriteManifest } from '../lake/quarantine.js';
import type { LakePaths } from '../lake/layout.js';
import { MANIFEST } from '../lake/layout.js';
import { appendManifest } from '../lake/manifest.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import { areSettings } from '../lake/check-line.js';
import { inspectManifest } from '../lake/inspect-manifest.js';
import { publishAll } from '../lake/publish.js';
import type { Format, Settings } from '../model/task.js';
import { shownPath } from '../text/paths.js';
import { SIDECAR, sidecarText } from '../source/keys.js';
import type { FileReader, Footer } from './check-file.js';
import { FORMATS } from './check-series.js';
import type { SeriesCheck } from './check-series.js';
import type { Finding } from './finding.js';
import { droppedLines, keyInText, keysIn, settingsOfFile, textsOf } from './lost-objects.js';
import type { LostContext } from './lost-objects.js';

export interface FixContext {
  readonly paths: LakePaths;
  readonly reader: FileReader;
  readonly nowMs: number;
}

export interface FixedSeries {
  /** Each with what was done and what is left. */
  readonly findings: readonly Finding[];
  /** Objects that are held no more. */
  readonly dropped: readonly DroppedLine[];
}

/** Only under the lake's lock. */
export async function fixSeries(
  context: FixContext,
  lost: LostContext,
  check: SeriesCheck,
): Promise<FixedSeries> {
  const findings: Finding[] = [];
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

/** What `fixSeries` would find to be held no more; nothing is written. */
export async function objectsLost(
  context: Pick<FixContext, 'reader' | 'nowMs' | 'paths'>,
  lost: LostContext,
  check: SeriesCheck,
): Promise<DroppedLine[]> {
  const dropped = objectsOfLines(lost, check, context.nowMs);
  for (const { kind, path, format } of check.findings) {
    if (format === undefined || !MOVED.has(kind)) continue;
    const file = join(context.paths.root, path);
    dropped.push(...(await objectsOfFile(context, lost, check, { file, path, format })));
  }
  return dropped;
}

/** As far as damaged lines still tell. */
function objectsOfLines(lost: LostContext, { inspected }: SeriesCheck, nowMs: number): DroppedLine[] {
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
): Promise<Pick<Finding, 'done' | 'left'>> {
  const { damaged, sound } = inspected;
  if (damaged.length === 0) return {};
  const torn = damaged.filter(({ isWhole }) => isWhole === true).map(({ text }) => text);
  const gone = damaged.filter(({ isWhole }) => isWhole !== true);
  const cause = `manifest-damaged: lines ${gone.map(({ number }) => number).join(', ')} of ${MANIFEST} cannot be read`;
  const kept =
    gone.length === 0
      ? undefined
      : await keepLines(paths, folder.path, { lines: gone.map(({ text }) => text), cause, nowMs });
  const added = dropped.map((line) => JSON.stringify(line));
  await rewriteManifest(paths, folder.path, [...sound, ...torn, ...added]);
  const done = kept === undefined ? 'ended the line' : `kept in ${shownPath(kept)}`;
  return dropped.length > 0 || broken.length > 0 ? { done, left: 'repair' } : { done };
}

function formatInText(text: string): Format {
  return FORMATS.find((format) => text.includes(`"format":"${format}"`)) ?? 'parquet';
}

function settingsInText(text: string): Settings | undefined {
  const [, found] = /"settings":(\{[^{}]*\})/.exec(text) ?? [];
  try {
    const settings: unknown = found === undefined ? undefined : JSON.parse(found);
    return areSettings(settings) ? settings : undefined;
  } catch {
    return undefined;
  }
}

const MOVED: ReadonlySet<Finding['kind']> = new Set(['damaged', 'unlisted', 'stranger']);

async function fixFile(
  context: FixContext,
  lost: LostContext,
  check: SeriesCheck,
  finding: Finding,
): Promise<{ finding: Finding; dropped: readonly DroppedLine[] }> {
  const { kind, path, format, text } = finding;
  const dropped: DroppedLine[] = [];
  if (kind === 'missing') return { finding: { ...finding, left: 'repair' }, dropped };
  if (kind === 'no-manifest')
    return { finding: { ...finding, done: 'its files are told one by one' }, dropped };
  if (kind === 'sidecar') return { finding: await fixSidecar(context, check, finding), dropped };
  if (!MOVED.has(kind)) return { finding: { ...finding, left: 'nothing-known' }, dropped };
  const file = join(context.paths.root, path);
  if (format !== undefined)
    dropped.push(...(await objectsOfFile(context, lost, check, { file, path, format })));
  // What is remembered comes first: a crash in between leaves the file, and the next --fix finds it again.
  await remember(check.folder.path, dropped);
  const kept = await setAside(context.paths, file, `${kind}: ${text}`, context.nowMs);
  const done = kept === undefined ? 'it is gone by now' : `kept in ${shownPath(kept)}`;
  const periods =
    finding.periods ??
    textsOf(
      lost,
      dropped.map(({ key }) => key),
    );
  const left = kind === 'damaged' || dropped.length > 0 ? { left: 'repair' as const } : {};
  return { finding: { ...finding, done, ...(periods.length > 0 ? { periods } : {}), ...left }, dropped };
}

/** The manifest knows what was in it. */
async function fixSidecar(
  { paths, nowMs }: FixContext,
  { inspected }: SeriesCheck,
  finding: Finding,
): Promise<Finding> {
  const { path, text } = finding;
  const line = inspected.manifest.zip.lines().find(({ file }) => `${file}${SIDECAR}` === path);
  if (line === undefined) return { ...finding, left: 'nothing-known' };
  const target = join(paths.root, path);
  const kept = await setAside(paths, target, `sidecar: ${text}`, nowMs);
  const staged = join(paths.staging, `${randomUUID()}.partial`);
  await mkdir(paths.staging, { recursive: true });
  await mkdir(dirname(target), { recursive: true });
  await writeFile(staged, sidecarText(line.key, line.sha256));
  await publishAll([{ staged, target }]);
  return { ...finding, done: `written anew${kept === undefined ? '' : `, kept in ${shownPath(kept)}`}` };
}

/** Objects in the file that no line tells of. */
async function objectsOfFile(
  { reader, nowMs }: Pick<FixContext, 'reader' | 'nowMs'>,
  lost: LostContext,
  { inspected }: SeriesCheck,
  { file, path, format }: { file: string; path: string; format: Format },
): Promise<DroppedLine[]> {
  const footer = format === 'parquet' ? await footerOf(reader, file) : undefined;
  const provenance = footer?.provenance;
  const held = inspected.manifest[format];
  const isNamed = held.lines().some((line) => line.file === path || path.endsWith(`/${line.file}`));
  // A file that some lines name is known by them, unless it says more itself.
  if (isNamed && provenance === undefined) return [];
  const settings = settingsOfFile(lost, path, {
    format,
    ...(provenance === undefined ? {} : { provenance }),
    ...(footer === undefined ? {} : { columns: footer.columns }),
  });
  const at = new Date(nowMs).toISOString();
  return droppedLines(lost, keysIn(lost, path, provenance), { held, format, settings, at });
}

/** Said once. */
async function remember(seriesFolder: string, lines: readonly DroppedLine[]): Promise<void> {
  if (lines.length === 0) return;
  const { dropped } = await inspectManifest(seriesFolder);
  const isSaid = (line: DroppedLine): boolean =>
    dropped.some(
      ({ key, format, settings }) =>
        key === line.key && format === line.format && (settings !== undefined || line.settings === undefined),
    );
  const added = lines.filter((line) => !isSaid(line));
  if (added.length > 0) await appendManifest(seriesFolder, added);
}

async function footerOf(reader: FileReader, file: string): Promise<Footer | undefined> {
  try {
    return await reader.footer(file);
  } catch {
    return undefined;
  }
}
