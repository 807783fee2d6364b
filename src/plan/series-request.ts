/** What a run requests of one series, and its settings from the lake. */
import type { Manifest } from '../lake/manifest.js';
import { continuedSettings } from '../lake/settings.js';
import type { Cadence, Format, Period, Series, Settings } from '../model/task.js';
import { cadencesOf } from '../source/keys.js';
import type { Source } from '../source/source.js';
import { findDataset } from '../source/venue.js';
import type { DayRange } from './choose-objects.js';
import { withDatasetSettings } from './dataset-settings.js';
import type { SharedSettings } from './dataset-settings.js';
import type { RestOffer } from './rest-periods.js';

export interface SeriesRequest {
  readonly series: Series;
  readonly settings: Settings;
  /** The names of settings that were given; the held series decides about the others. Undefined: all are given. */
  readonly given?: ReadonlySet<keyof Settings>;
  /** Cadences that the dataset has and the options allow. */
  readonly cadences: readonly Cadence[];
  /** Ascending. */
  readonly ranges: readonly DayRange[];
  /** The first day of the order, or -Infinity for that of the series: days from it on that the lake lacks are added to the ranges. */
  readonly since?: number;
  /** The data that REST offers; undefined: this request does not use REST. */
  readonly rest?: RestOffer | undefined;
  /** Files of the series that differ from their last commit. */
  readonly broken?: ReadonlySet<string>;
  /** Plans exactly these days, also refused revisions. Other days are added only if `force` rewrites the series with other settings. A new series takes no settings from the others. */
  readonly exact?: true;
  /** Objects of these cadences replace the held objects of the ranges: always, or only if `haveMore`. */
  readonly rewrites?: 'always' | 'when-days-have-more';
  /** Days without rows in the replaced month. The archive need not have them. */
  readonly emptyDays?: readonly number[];
  /** Months that the plan of their days replaces. */
  readonly replaced?: readonly Pick<Period, 'from' | 'to'>[];
  /** The monthly object replaces held days if another day of the month is a hole. */
  readonly fillsHolesFromMonths?: true;
}

/**
 * The request with the settings of the held series, where none was given. `sharedOf` resolves with the settings of other series of
 * the dataset; they count for a series without an object of this format, unless the request is exact.
 */
export async function withHeldSettings(
  venue: Source,
  request: SeriesRequest,
  held: Manifest,
  sharedOf: (format: Format) => Promise<SharedSettings | undefined>,
): Promise<SeriesRequest> {
  const { series, given, rest, ...others } = request;
  if (given === undefined) return request;
  const own = continuedSettings(request.settings, given, held);
  const isNew = held[own.format].size === 0;
  const settings =
    isNew && request.exact !== true ? withDatasetSettings(own, given, await sharedOf(own.format)) : own;
  const spec = findDataset(venue, series.market, series.dataset);
  const cadences =
    spec === undefined ? request.cadences : cadencesOf(spec, series.interval, settings.cadence);
  // Files of the archive never come from REST.
  return {
    ...others,
    series,
    settings,
    cadences,
    ...(rest === undefined || settings.format === 'zip' ? {} : { rest }),
  };
}
