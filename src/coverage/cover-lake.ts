/** Reads the manifests of a lake, looks for the files that they name, and yields the coverage of each series, with the halts of its market. */
import { join, posix } from 'node:path';
import { amountsOf, gapsOf } from './gaps.js';
import type { Amounts, Gap } from './gaps.js';
import { HaltFinder } from './halts.js';
import { coverSeries } from './series-coverage.js';
import type { DayRange } from './own-days.js';
import type { SeriesCoverage } from './series-coverage.js';
import { NO_SPANS, union } from './spans.js';
import type { Spans } from './spans.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { seriesFolder } from '../lake/layout.js';
import { emptyManifest, foldManifest } from '../lake/manifest.js';
import type { Manifest, ManifestFold, ReadLine } from '../lake/manifest.js';
import { listEntries } from '../lake/walk-lake.js';
import { FORMATS, seriesName } from '../model/task.js';
import type { Format, Market, Period, Series } from '../model/task.js';
import type { LastFailures } from '../select/last-failures.js';
import { periodOf } from '../source/keys.js';
import { findDataset } from '../source/venue.js';
import type { Source } from '../source/source.js';

export interface CoverRequest {
  readonly root: string;
  readonly venue: Source;
  /** All series of the lake, in the order of their paths. Series that are not selected still help to find halts. */
  readonly held: readonly Series[];
  readonly selected: readonly Series[];
  readonly formats: readonly Format[];
  readonly range: DayRange;
  readonly today: number;
  readonly failures?: LastFailures | undefined;
  /** Called for each manifest line or manifest that cannot be read; the others are still read. */
  readonly onRefused: (error: CryptodlError) => void;
  readonly onHalt?: (halt: FoundHalt) => void;
}

/** Seconds since 1970 `[from, to)` in which no symbol of a dataset has rows. */
export interface FoundHalt {
  readonly market: Market;
  readonly dataset: string;
  readonly interval?: string;
  readonly from: number;
  readonly to: number;
}

/** One series in one format. */
export interface CoveredSeries extends Amounts {
  readonly coverage: SeriesCoverage;
  /** In order of time. Includes gaps in which no data is expected (`isMissing` is false). */
  readonly gaps: readonly Gap[];
}

/** Yields series in the order of the lake, once for each format. */
export async function* coverLake(request: CoverRequest): AsyncGenerator<CoveredSeries> {
  const all = new Set(request.selected);
  for (const group of groupsOf(request.held)) {
    const selected = group.filter((series) => all.has(series));
    if (selected.length > 0) yield* coverGroup(request, group, selected);
  }
}

/** Groups series by market, dataset and interval: a halt affects a whole group. */
function groupsOf(held: readonly Series[]): Series[][] {
  const groups = new Map<string, Series[]>();
  for (const series of held) {
    const name = JSON.stringify([series.market, series.dataset, series.interval]);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [series]);
    else group.push(series);
  }
  return [...groups.values()];
}

async function* coverGroup(
  request: CoverRequest,
  group: readonly Series[],
  selected: readonly Series[],
): AsyncGenerator<CoveredSeries> {
  const finder = new HaltFinder();
  const covered: SeriesCoverage[] = [];
  let rowSeconds: number | undefined;
  for (const series of selected) {
    const found = await coverOne(request, series, finder);
    for (const coverage of found) {
      const isSelected = coverage.format === undefined || request.formats.includes(coverage.format);
      if (!isSelected || (coverage.format === undefined && request.formats.length < FORMATS.length)) continue;
      covered.push(coverage);
      if (coverage.gaps.length > 0) rowSeconds = coverage.rowSeconds;
    }
  }
  // The other series are read only to explain gaps of the selected ones.
  if (rowSeconds !== undefined) {
    const known = new Set(selected);
    for (const series of group) if (!known.has(series)) await coverOne(request, series, finder);
  }
  const derived = rowSeconds === undefined ? NO_SPANS : finder.halts(rowSeconds);
  reportHalts(request, selected[0], derived);
  const known = knownHalts(request, selected[0]);
  for (const coverage of covered) {
    const gaps = gapsOf(coverage, { known, derived });
    yield { coverage, gaps, ...amountsOf(coverage, gaps) };
  }
}

function reportHalts({ onHalt, venue }: CoverRequest, series: Series | undefined, halts: Spans): void {
  if (series === undefined) return;
  const { symbol: _, ...of } = series;
  const instant = (at: number): number => (halts[at] ?? 0) + venue.dayStartMs / 1000;
  for (let i = 0; i < halts.length; i += 2) onHalt?.({ ...of, from: instant(i), to: instant(i + 1) });
}

function knownHalts({ venue }: CoverRequest, series: Series | undefined): Spans {
  const seconds = (iso: string): number => (Date.parse(iso) - venue.dayStartMs) / 1000;
  return union(
    venue
      .halts()
      .filter(({ market }) => market === series?.market)
      .flatMap(({ from, to }) => [seconds(from), seconds(to)]),
  );
}

/** The lines of a manifest, counted one by one to save memory. */
class CountedLines implements ManifestFold {
  readonly manifest = emptyManifest();
  readonly revisions: Partial<Record<Format, number>> = {};
  readonly lost: Partial<Record<Format, Period[]>> = {};
  readonly refused: CryptodlError[] = [];
  readonly #venue: Source;
  readonly #series: Series;

  constructor(venue: Source, series: Series) {
    this.#venue = venue;
    this.#series = series;
  }

  onLine({ content: line }: ReadLine): void {
    if (line instanceof CryptodlError) this.refused.push(line);
    else if (line.kind === 'dropped') {
      const period = periodOf({ venue: this.#venue, series: this.#series }, line.key);
      if (period !== undefined) (this.lost[line.format] ??= []).push(period);
    } else if (line.kind === 'object' && 'replaces' in line) {
      const { format } = line.settings;
      this.revisions[format] = (this.revisions[format] ?? 0) + 1;
    }
  }
}

/** Resolves with an empty list for a manifest that cannot be read. */
async function coverOne(
  request: CoverRequest,
  series: Series,
  finder: HaltFinder,
): Promise<SeriesCoverage[]> {
  const { root, venue, range, today, onRefused } = request;
  const folder = seriesFolder(venue.name, series);
  let read: CountedLines;
  let missing: ReadonlySet<string>;
  try {
    read = await foldManifest(join(root, folder), venue.archive, () => new CountedLines(venue, series));
    for (const error of read.refused) onRefused(error);
    missing = await missingFiles(root, folder, read.manifest);
  } catch (error) {
    onRefused(toCryptodlError(error));
    return [];
  }
  const { manifest, revisions, lost } = read;
  const spec = findDataset(venue, series.market, series.dataset);
  const failures = request.failures?.bySeries.get(seriesName(series)) ?? [];
  const covered = coverSeries(series, manifest, FORMATS, {
    range,
    today,
    spec,
    revisions,
    lost,
    missingFiles: missing,
    failures,
  });
  const rows = covered.find(({ knownDays }) => knownDays.length > 0);
  if (rows !== undefined) finder.add(rows.knownDays, rows.gaps);
  return covered;
}

/**
 * The files of a series that do not exist or are symbolic links, by the name that manifest lines give them. Lists each folder once, and
 * reads no file.
 */
async function missingFiles(
  root: string,
  ofSeries: string,
  manifest: Manifest,
): Promise<ReadonlySet<string>> {
  const listed = new Map<string, ReadonlySet<string>>();
  const missing = new Set<string>();
  for (const format of FORMATS) {
    const top = format === 'zip' ? root : join(root, ofSeries);
    for (const file of manifest[format].files()) {
      const folder = join(top, posix.dirname(file));
      const names = listed.get(folder) ?? new Set((await listEntries(folder)).files);
      listed.set(folder, names);
      if (!names.has(posix.basename(file))) missing.add(file);
    }
  }
  return missing;
}
