/** The usual time of publication of daily objects, from the copies of listings of earlier runs. Sends no request. */
import { join } from 'node:path';
import { DAY_MS, dayOf, startOfDay } from '../model/calendar.js';
import type { Clock } from '../model/clock.js';
import type { Options } from '../options/flags.js';
import { stateFolder } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import { parseListingCopy } from './listing-copy.js';
import { Copies } from '../http/response-cache.js';
import type { Market, Series } from '../model/task.js';
import { cadencesOf } from './keys.js';
import { intervalsOf } from './venue.js';
import type { DatasetSpec } from './venue.js';
import { listingCopyName } from './listing-session.js';
import type { Source } from './source.js';

export interface PublicationHour {
  /** Time from the end of a day until 95 % of its objects were published. */
  readonly afterMs: number;
  /** `D+1 02:40 UTC`; D is the day of the object. */
  readonly by: string;
  /** Objects and symbols of the sample. */
  readonly objects: number;
  readonly symbols: readonly string[];
}

const DAYS = 30;
const SHARE = 0.95;
/** The smallest sample for a share of 95 %. */
const LEAST_OBJECTS = 20;

export interface PublicationRequest {
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly source: Source;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
}

/** The returned function resolves with undefined if the copies have too few objects of the dataset. */
export function publicationHours(
  request: PublicationRequest,
): (market: Market, spec: DatasetSpec) => Promise<PublicationHour | undefined> {
  const { options, surroundings, source, clock, warn } = request;
  const nowMs = options.nowMs ?? clock.now();
  const folder = join(stateFolder(options, surroundings), 'cache');
  const copies = new Copies({ folder, nowMs, isReadOnly: true, clock, warn });
  const url = options.listingUrl;
  const today = dayOf(nowMs, source);

  const delaysOf = async (series: Series): Promise<number[]> => {
    const prefix = source.archive.seriesPrefix(series, 'daily');
    const periodOf = source.archive.periodOf(series, 'daily');
    const copy = await copies.read(listingCopyName(url, prefix), parseListingCopy);
    const objects = copy?.value.stretches.flatMap((stretch) => stretch.objects) ?? [];
    return objects.flatMap(({ key, lastModified }) => {
      const period = periodOf(key);
      const at = Date.parse(lastModified);
      const isCounted = period !== undefined && period.from >= today - DAYS && Number.isFinite(at);
      return isCounted ? [at - startOfDay(period.to, source)] : [];
    });
  };

  return async (market, spec) => {
    const intervals = intervalsOf(spec)?.map((interval) => ({ interval })) ?? [{}];
    const delays: number[] = [];
    const symbols: string[] = [];
    for (const symbol of source.archive.steadySymbols(market)) {
      const before = delays.length;
      for (const layer of intervals) {
        const series: Series = { market, dataset: spec.name, ...layer, symbol };
        if (cadencesOf(spec, series.interval, 'daily').length > 0) delays.push(...(await delaysOf(series)));
      }
      if (delays.length > before) symbols.push(symbol);
    }
    if (delays.length < LEAST_OBJECTS) return undefined;
    delays.sort((a, b) => a - b);
    const afterMs = delays[Math.ceil(delays.length * SHARE) - 1] ?? 0;
    return { afterMs, by: hourText(afterMs + DAY_MS + source.dayStartMs), objects: delays.length, symbols };
  };
}

/** The text of a time since 00:00 UTC of day D, rounded up to the minute. */
function hourText(sinceMs: number): string {
  const minutes = Math.ceil(sinceMs / 60_000);
  const ofDay = new Date(minutes * 60_000).toISOString().slice(11, 16);
  return `D+${Math.floor((minutes * 60_000) / DAY_MS)} ${ofDay} UTC`;
}

/** `95 % by D+1 02:40 UTC, of 60 daily objects of BTCUSDT, ETHUSDT in 30 days` */
export function publicationText({ by, objects, symbols }: PublicationHour): string {
  return `95 % by ${by}, of ${objects} daily objects of ${symbols.join(', ')} in ${DAYS} days`;
}
