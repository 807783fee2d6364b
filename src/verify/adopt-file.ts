/**
 * Adoption of a Parquet file that no manifest line names, for example in a copied folder of a series: its footer names its objects,
 * and its rows prove the rest of their manifest lines.
 */
import { join } from 'node:path';
import type { DuckDbSession, Engine } from '../convert/duckdb.js';
import { isFileError } from '../convert/duckdb-errors.js';
import { expectedRows } from '../convert/gaps.js';
import { inspectRows, rowsByPeriod } from '../convert/inspect-rows.js';
import { hasWrittenSchema } from '../convert/written-schema.js';
import { createLineCheck } from '../lake/check-manifest-line.js';
import { HeldObjects } from '../lake/held-objects.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { fileFacts, fileSize } from '../lake/publish.js';
import type { FileFacts } from '../lake/publish.js';
import { differingSettings } from '../lake/settings.js';
import {
  dayOf,
  monthOf,
  monthStart,
  monthText,
  parseDay,
  parsePeriod,
  periodText,
} from '../model/calendar.js';
import type { Period, Series, Settings } from '../model/task.js';
import { TOOL_VERSION } from '../model/version.js';
import { periodOf, periodOfFile } from '../source/keys.js';
import type { Source } from '../source/source.js';
import { findDataset } from '../source/venue.js';
import type { DatasetSpec } from '../source/venue.js';
import { readFooter } from '../write/footer.js';
import type { AdoptedFile, Footer } from './check-file.js';

interface Adoption {
  readonly venue: Source;
  readonly nowMs: number;
}

/**
 * Resolves with the manifest lines of the file; undefined if the footer and the rows do not prove them. Reasons: the file cannot be
 * read as Parquet; another file of the folder has the same days; the footer is of another series, has an object of REST or lacks facts
 * of an object; a period is held already, is not over, or is before the first day of the dataset; its columns are not those that the
 * program writes; a bar is missing or off the grid; a row is wrong or outside of the periods. Rejects with an errno if the file system refuses to read the file.
 */
export async function provenLines(
  engine: Pick<Engine, 'session'>,
  { venue, nowMs }: Adoption,
  file: AdoptedFile,
): Promise<readonly ObjectLine[] | undefined> {
  const spec = findDataset(venue, file.series.market, file.series.dataset);
  const path = join(file.folder, file.file);
  if (spec === undefined || (await fileSize(path)) === undefined) return undefined;
  // DuckDB does not tell a file that it may not open from a damaged one, so the file is read without it first.
  const facts = await fileFacts(path);
  const session = await engine.session();
  try {
    return await linesOfFooter(session, { venue, nowMs, spec, facts }, file);
  } catch (error) {
    if (isFileError(error)) return undefined;
    throw error;
  } finally {
    session.close();
  }
}

async function linesOfFooter(
  session: DuckDbSession,
  {
    venue,
    nowMs,
    spec,
    facts,
  }: Adoption & { readonly spec: DatasetSpec; readonly facts: Pick<FileFacts, 'bytes' | 'sha256'> },
  { series, folder, file, siblings, held }: AdoptedFile,
): Promise<readonly ObjectLine[] | undefined> {
  if (overlapsOther(file, siblings)) return undefined;
  const path = join(folder, file);
  const footer = await readFooter(session, path);
  const stated = factsInFooter(footer, venue, series, file);
  if (stated === undefined) return undefined;
  const { settings, objects } = stated;
  const periods = objects.map(({ period }) => period);
  if (!periods.every((period) => isPossible(venue, spec, dayOf(nowMs, venue), period))) return undefined;
  if (!(await hasWrittenSchema(session, { path, spec, settings }))) return undefined;
  const { interval } = series;
  const rowsOf = await rowsByPeriod(session, { path, spec, settings, interval, periods });
  const at = new Date(nowMs).toISOString();
  const lines = objects.flatMap(({ period, fields }, index): unknown[] => {
    const found = rowsOf.get(index);
    const expected = expectedRows(spec, series, { key: fields.key, period });
    if (found === undefined || found.repeated > 0 || found.offGrid > 0) return [];
    // Rows at irregular times may lie just outside of their period, so times do not tell the object of a row.
    if (expected === undefined ? objects.length > 1 : found.rows !== expected) return [];
    const { rows, first, last } = found;
    const inFile = { file, fileBytes: facts.bytes, fileSha256: facts.sha256, fileRows: footer.rows };
    const { cadence } = period;
    const object = { cadence, period: periodText(period), ...fields, rows, first, last };
    return [{ v: 1, kind: 'object', ...object, ...inFile, settings, at, tool: TOOL_VERSION }];
  });
  if (lines.length < objects.length) return undefined;
  const checked = checkedLines(lines, folder, venue);
  if (checked === undefined || !fits(checked, held, settings)) return undefined;
  const columns = new Set(footer.columns.keys());
  const how = { path, spec, settings, interval, lines: checked, columns };
  return (await inspectRows(session, how)).length === 0 ? checked : undefined;
}

/** The settings and the objects that the footer of a file states. */
interface FooterFacts {
  readonly settings: Settings;
  readonly objects: readonly { readonly period: Period; readonly fields: ObjectFacts }[];
}

type ObjectFacts = Pick<ObjectLine, 'key' | 'sha256' | 'bytes' | 'verified' | 'etag' | 'lastModified'>;

/** The objects in period order; undefined if the footer is of another series or file. */
function factsInFooter(
  { provenance }: Footer,
  venue: Source,
  series: Series,
  file: string,
): FooterFacts | undefined {
  const { content, settings, objects: stated } = provenance ?? {};
  const isOfSeries = (['market', 'dataset', 'interval', 'symbol'] as const).every(
    (name) => content?.[name] === series[name],
  );
  if (content === undefined || !isOfSeries || content['venue'] !== venue.name) return undefined;
  // No version so far has written a version.
  if (content['v'] !== undefined) return undefined;
  if (settings?.format !== 'parquet' || settings.asPublished) return undefined;
  const label = String(content['period']);
  if (file !== `${label}.parquet` || stated === undefined) return undefined;
  const objects: FooterFacts['objects'][number][] = [];
  for (const { key, sha256, bytes, verified, etag, lastModified } of stated as readonly ObjectFacts[]) {
    const period = typeof key === 'string' ? periodOf({ venue, series }, key) : undefined;
    if (period === undefined || verified === 'rest' || !fitsSettings(settings, label, period))
      return undefined;
    const revision = {
      ...(etag === undefined ? {} : { etag }),
      ...(lastModified === undefined ? {} : { lastModified }),
    };
    objects.push({ period, fields: { key, sha256, bytes, verified, ...revision } });
  }
  objects.sort((a, b) => a.period.from - b.period.from);
  return objects.length === 0 ? undefined : { settings, objects };
}

/** Whether a run with these settings writes the object to the file with this label. */
function fitsSettings({ partition, cadence: wanted }: Settings, label: string, period: Period): boolean {
  const month = monthText(monthOf(period.from));
  const own = partition === 'day' && period.cadence === 'daily' ? periodText(period) : month;
  return label === own && (wanted === 'auto' || wanted === period.cadence);
}

/** Whether the archive can have the object: its last day is over, and it is not before the first day of the exchange or dataset. */
function isPossible(venue: Source, spec: DatasetSpec, today: number, { cadence, from, to }: Period): boolean {
  const first = spec.spans[cadence]?.first?.from ?? 0;
  return to <= today && from >= Math.max(first, monthStart(monthOf(parseDay(venue.firstDay) ?? 0)));
}

/** Whether another partition file of the folder may have rows of the same days. Neither of the two is adopted. */
function overlapsOther(file: string, siblings: readonly string[]): boolean {
  const own = periodOfFile(file);
  return siblings.some((name) => {
    const other = name === file || !name.endsWith('.parquet') ? undefined : periodOfFile(name);
    return own !== undefined && other !== undefined && other.from < own.to && own.from < other.to;
  });
}

function checkedLines(lines: readonly unknown[], folder: string, venue: Source): ObjectLine[] | undefined {
  const check = createLineCheck(folder, venue.archive);
  try {
    return lines.map((line) => check(line) as ObjectLine);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Whether the periods overlap neither each other nor held ones, and the settings are those of the series. */
function fits(lines: readonly ObjectLine[], held: HeldObjects, settings: Settings): boolean {
  const own = new HeldObjects();
  for (const line of lines) own.add(line);
  if (own.size < lines.length || differingSettings(held, settings).length > 0) return false;
  return lines.every((line) => {
    const period = parsePeriod(line.cadence, line.period);
    return period !== undefined && held.overlapping(period).length === 0;
  });
}
