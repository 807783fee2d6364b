/** Writes the file of one month of bars with its manifest lines. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { DuckDbSession, Row } from '../../convert/duckdb.js';
import { isoInstant } from '../../convert/row-times.js';
import { readFooter } from '../../convert/parquet-footer.js';
import { copyTo } from '../../convert/statements.js';
import type { LakeParts, Session } from '../../run/session.js';
import { commitFiles } from '../../lake/commit-journal.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import { seriesFolder, stagingFolder } from '../../lake/layout.js';
import type { ManifestLine, ObjectLine } from '../../model/manifest-line.js';
import { fileFacts, fileSize } from '../../files/publish.js';
import { moveToQuarantine } from '../../lake/quarantine.js';
import { dayPeriod, dayText, parseDay } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import { TOOL_VERSION } from '../../model/version.js';
import { madeKey } from '../../exchange/keys.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { droppedLine } from '../../lake/write/commit.js';
import { fileMetadata } from '../../lake/write/make-file.js';
import { ruleText, sourceName } from './source.js';
import type { BarMonth, Recipe } from './source.js';

/** The series of bars in the lake, and what they are made of. */
export interface BarTarget extends Recipe {
  readonly series: Series;
  readonly spec: DatasetSpec;
  /** Absolute. */
  readonly folder: string;
  readonly held: HeldObjects;
}

/** What was written. `short`: bars that lack rows of the source, and absent ones of which it has no rows. */
export interface MonthFigures {
  readonly bars: number;
  readonly short: number;
  readonly bytes: number;
}

/** Commits the bars of the table `made`. Undefined if it has none. Rejects with errors of the disk. */
export async function writeMonth(
  engine: DuckDbSession,
  { clock, lock, manifests, paths, exchange }: Session & LakeParts,
  target: BarTarget,
  month: BarMonth,
): Promise<MonthFigures | undefined> {
  const { folder, held, series, spec } = target;
  const { settings } = target.source;
  const byDay = await engine.rows(
    'SELECT day, count_if(is_made) AS rows, count_if(is_short) AS short, min(open_time) FILTER (is_made) AS first, max(open_time) FILTER (is_made) AS last FROM made GROUP BY day',
  );
  const sum = (name: string): number => byDay.reduce((total, row) => total + Number(row[name]), 0);
  if (sum('rows') === 0) return undefined;
  const staged = join(await stagingFolder(paths), `${randomUUID()}.partial`);
  try {
    const rows = '(SELECT * FROM made WHERE is_made ORDER BY open_time)';
    const files = month.from.map(({ path: from, sha256: digest }) => [basename(from), digest]);
    const metadata = fileMetadata(
      { exchange, tool: TOOL_VERSION, series, spec, settings, label: month.label },
      {
        entry: { made: { rule: ruleText(target), files } },
        hasArchive: true,
        hasRest: month.from.some(({ hasRest }) => hasRest),
      },
    );
    await engine.run(copyTo({ spec, settings, targetPath: staged }, rows, metadata));
    const { bytes, sha256 } = await fileFacts(staged);
    const { rows: fileRows } = await readFooter(staged);
    const path = join(folder, month.file);
    const nowMs = clock.now();
    if ((await fileSize(path)) !== held.fileBefore(month.file)?.bytes)
      await moveToQuarantine(paths, path, 'damaged: cryptodl bars makes this file again', nowMs);
    const ofFile = { at: new Date(nowMs).toISOString(), fileBytes: bytes, fileSha256: sha256, fileRows };
    const lines = linesOf(target, { month, byDay }, ofFile);
    await lock.confirm();
    // Checked again: a symbolic link may have replaced a folder since the rows were read.
    await paths.folder(seriesFolder(exchange.name, series));
    const publications = [{ staged, target: path }];
    await commitFiles({ paths, manifests }, { seriesFolder: folder, publications, dead: [], lines });
    return { bars: fileRows, short: sum('short'), bytes };
  } finally {
    await rm(staged, { force: true });
  }
}

/** The lines of the existing file whose days the month does not have: the source no longer has their rows. */
export function lostDays({ held }: BarTarget, { file, days }: BarMonth): ObjectLine[] {
  const made = new Set(days.map(dayText));
  return held.inFile(file).filter(({ period }) => !made.has(period));
}

/** The lines that differ from the held ones, and the last one: the last line of a file has the digest of its month. */
function linesOf(
  target: BarTarget,
  { month, byDay }: { readonly month: BarMonth; readonly byDay: readonly Row[] },
  { at, ...ofFile }: Pick<ObjectLine, 'at' | 'fileBytes' | 'fileSha256' | 'fileRows'>,
): ManifestLine[] {
  const { held, series, source } = target;
  const { days, file, from, sha256 } = month;
  const fileBefore = held.fileBefore(file);
  const lines = days.map((day): ObjectLine => {
    const row = byDay.find((each) => each['day'] === day && Number(each['rows']) > 0);
    return {
      v: 1,
      kind: 'object',
      key: madeKey(series, dayPeriod(day)),
      cadence: 'daily',
      period: dayText(day),
      bytes: from.reduce((sum, { bytes }) => sum + bytes, 0),
      sha256,
      verified: 'lake',
      source: sourceName(source.series),
      settings: source.settings,
      tool: TOOL_VERSION,
      rows: Number(row?.['rows'] ?? 0),
      ...(row === undefined ? {} : { first: isoInstant(row, 'first'), last: isoInstant(row, 'last') }),
      at,
      file,
      ...ofFile,
      ...(fileBefore === undefined ? {} : { fileBefore }),
    };
  });
  const isKnown = (line: ObjectLine): boolean => {
    const before = held.ofDay(parseDay(line.period) ?? 0);
    return before !== undefined && contentOf(line) === contentOf(before);
  };
  return [
    ...lostDays(target, month).map((line) => droppedLine(line, 'parquet', at)),
    ...lines.filter((line, index) => index === lines.length - 1 || !isKnown(line)),
  ];
}

function contentOf({ file, rows, first, last, source, settings }: ObjectLine): string {
  return JSON.stringify([file, rows, first, last, source, settings]);
}
