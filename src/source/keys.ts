/** The archive's key grammar: `data/<market>/<cadence>/<dataset>/<SYMBOL>/[<interval>/]<file>`. */
import { parsePeriod, periodText } from '../model/calendar.js';
import type { ArchiveObject, Cadence, PartitionPlan, Period, Series } from '../model/task.js';
import type { DatasetSpec, Venue } from './venue.js';

export const SIDECAR = '.CHECKSUM';

/** What the archive publishes beside an object. */
export function sidecarText(key: string, sha256: string): string {
  return `${sha256}  ${key.slice(key.lastIndexOf('/') + 1)}\n`;
}

/** Prefix under which a dataset lists one common prefix per symbol. */
export function datasetPrefix(
  venue: Venue,
  market: Series['market'],
  cadence: Cadence,
  dataset: string,
): string {
  return `data/${venue.markets[market].path}/${cadence}/${dataset}/`;
}

/** Prefix under which all objects of a series lie. */
export function seriesPrefix(venue: Venue, series: Series, cadence: Cadence): string {
  const interval = series.interval === undefined ? '' : `${series.interval}/`;
  return `${datasetPrefix(venue, series.market, cadence, series.dataset)}${series.symbol}/${interval}`;
}

/** File name without the period: kline files name their interval, the others their dataset. */
function stem(series: Series): string {
  return `${series.symbol}-${series.interval ?? series.dataset}-`;
}

export function objectKey(venue: Venue, series: Series, period: Period): string {
  return `${seriesPrefix(venue, series, period.cadence)}${stem(series)}${periodText(period)}.zip`;
}

/**
 * The period of a zip key below the series' prefix; undefined for sidecars and for stray keys
 * (`part-00000-….zip`, un-padded months: facts, section 1.0), which no calendar date asks for.
 */
export function periodOfKey(
  prefix: string,
  series: Series,
  cadence: Cadence,
  key: string,
): Period | undefined {
  const start = prefix + stem(series);
  if (!key.startsWith(start) || !key.endsWith('.zip')) return undefined;
  return parsePeriod(cadence, key.slice(start.length, -'.zip'.length));
}

/** Name of the one CSV inside: the key's file name with another ending. */
export function memberName(key: string): string {
  return `${key.slice(key.lastIndexOf('/') + 1, -'.zip'.length)}.csv`;
}

/** The archive sorts by UTF-8 bytes. */
export function byKey(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** URL path of a key: every segment percent-encoded as UTF-8. */
export function keyPath(key: string): string {
  // Nearly all keys are their own path, and each is asked for twice.
  if (/^[\w./-]*$/.test(key)) return key;
  return key.split('/').map(encodeURIComponent).join('/');
}

/** What a period of REST's rows is called where the archive has keys. */
export function restKey({ market, dataset, interval, symbol }: Series, period: Period): string {
  return ['rest', market, dataset, interval, symbol, periodText(period)]
    .filter((part) => part !== undefined)
    .join('/');
}

/** Whether the days of the object are published as well, and may stand for it. */
export function hasDays(
  spec: DatasetSpec | undefined,
  { series, settings }: Pick<PartitionPlan, 'series' | 'settings'>,
  { period, rest }: ArchiveObject,
): boolean {
  return (
    rest === undefined &&
    period.cadence === 'monthly' &&
    settings.cadence === 'auto' &&
    spec !== undefined &&
    cadencesOf(spec, series.interval).includes('daily')
  );
}

/** Cadences in which this dataset exists for this interval, and which `--cadence` allows. */
export function cadencesOf(
  spec: DatasetSpec,
  interval: string | undefined,
  allowed: 'auto' | Cadence = 'auto',
): readonly Cadence[] {
  const { intervals } = spec;
  return spec.cadences.filter(
    (cadence) =>
      (allowed === 'auto' || cadence === allowed) &&
      (intervals === undefined || interval === undefined || intervals[cadence].includes(interval)),
  );
}
