/** Reads the manifests of a lake, looks for the files that they name, and yields the coverage of each series. */
import { join } from 'node:path';
import { amountsOf, gapsOf } from './gaps.js';
import type { Gap, SeriesAmounts } from './gaps.js';
import { coverSeries } from './series-coverage.js';
import type { DayRange } from './own-days.js';
import type { SeriesCoverage } from './series-coverage.js';
import { union } from './spans.js';
import type { Spans } from './spans.js';
import { CryptodlError, toCryptodlError } from '../model/errors.js';
import { seriesFolder } from '../lake/layout.js';
import { emptyManifest, foldManifest } from '../lake/manifest.js';
import type { Manifest, ManifestFold, ReadLine } from '../lake/manifest.js';
import { listEntries } from '../lake/walk-lake.js';
import { FORMATS, seriesName } from '../model/task.js';
import type { Format, Period, Series } from '../model/task.js';
import type { LastFailures } from '../select/last-failures.js';
import { periodOf } from '../source/keys.js';
import { findDataset } from '../source/venue.js';
import type { Source } from '../source/source.js';

export interface CoverRequest {
  readonly root: string;
  readonly venue: Source;
  readonly selected: readonly Series[];
  readonly formats: readonly Format[];
  readonly range: DayRange;
  readonly today: number;
  readonly failures?: LastFailures | undefined;
  /** Called for each manifest line or manifest that cannot be read; the others are still read. */
  readonly onRefused: (error: CryptodlError) => void;
}

/** One series in one format. */
export interface CoveredSeries extends SeriesAmounts {
  readonly coverage: SeriesCoverage;
  /** In order of time. Includes gaps in which no data is expected (`isMissing` is false). */
  readonly gaps: readonly Gap[];
}

/** Yields the selected series in their order, once for each format. */
export async function* coverLake(request: CoverRequest): AsyncGenerator<CoveredSeries> {
  const { formats, selected, venue } = request;
  for (const series of selected) {
    const halts = haltsOf(venue, series);
    for (const coverage of await coverOne(request, series)) {
      const { format } = coverage;
      // A series without data is of no format, and stands for all.
      if (format === undefined ? formats.length < FORMATS.length : !formats.includes(format)) continue;
      const gaps = gapsOf(coverage, halts);
      yield { coverage, gaps, ...amountsOf(coverage, gaps) };
    }
  }
}

/** The listed halts of the trading that the dataset records. */
function haltsOf(venue: Source, { market, dataset }: Series): Spans {
  const seconds = (iso: string): number => (Date.parse(iso) - venue.dayStartMs) / 1000;
  return union(
    venue
      .halts()
      .filter((halt) => halt.market === market && halt.datasets.includes(dataset))
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
async function coverOne(request: CoverRequest, series: Series): Promise<SeriesCoverage[]> {
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
  return coverSeries(series, manifest, FORMATS, {
    range,
    today,
    spec,
    revisions,
    lost,
    missingFiles: missing,
    failures,
  });
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
      const end = file.lastIndexOf('/') + 1;
      const place = `${top}/${file.slice(0, end)}`;
      const names = listed.get(place) ?? new Set((await listEntries(place)).files);
      listed.set(place, names);
      if (!names.has(file.slice(end))) missing.add(file);
    }
  }
  return missing;
}
