/** What a run requests of one series, and its settings from the lake. What the plans of all series share. */
import type { Manifest } from '../lake/manifest.js';
import { continuedSettings } from '../lake/settings.js';
import type { Cadence, Format, Period, Series, Settings } from '../model/task.js';
import { cadencesOf } from '../exchange/keys.js';
import type { Exchange } from '../exchange/exchange.js';
import { findDataset } from '../exchange/exchange-spec.js';
import type { DayRange } from '../lake/catalogue/spans.js';
import type { ErrorCode } from '../model/errors.js';
import type { ListingRange, SeriesListing } from './series-listing.js';
import type { RestOffer } from './rest-evidence.js';
import type { SymbolLife } from './symbol-life.js';
import { join } from 'node:path';
import { FOLDERS, seriesAt, seriesFolder } from '../lake/layout.js';
import { safeName } from '../lake/safe-names.js';
import { memoized } from '../model/by-name.js';
import { MANIFEST_ENDING } from '../lake/manifest-place.js';
import type { Manifests } from '../lake/manifests.js';
import { checkedFolder } from '../files/path-checks.js';
import { listEntries } from '../lake/walk-lake.js';

export interface PlanContext {
  readonly exchange: Exchange;
  readonly root: string;
  readonly manifests: Pick<Manifests, 'of'>;
  readonly today: number;
  readonly nowMs: number;
  readonly force: boolean;
  readonly revisions: 'check' | 'ignore' | 'only' | 'take';
  /** This many days before today are checked again: held objects may change, and late ones may be published. */
  readonly recheckDays: number;
  readonly life: SymbolLife;
  readonly listSeries: (series: Series, cadence: Cadence, selected: ListingRange) => Promise<SeriesListing>;
  /** Earlier refusals with these codes are ignored: their revisions are fetched again. */
  readonly ignoredRefusals: ReadonlySet<ErrorCode>;
  readonly datasetSettings: DatasetSettings;
  /** The planned series of which `mayLackEdges` may be true. */
  readonly edges: Set<Series>;
  /** The first published or held days of the planned series whose range has no first day. */
  readonly starts: Map<Series, number>;
}

export interface SelectedSeries {
  readonly series: Series;
  readonly settings: Settings;
  /** The names of settings that were given; the held series decides about the others. Undefined: all are given. */
  readonly given?: ReadonlySet<keyof Settings>;
  /** Cadences that the dataset has and the options allow. */
  readonly cadences: readonly Cadence[];
  /** Ascending. */
  readonly ranges: readonly DayRange[];
  /** The first day of the order, or -Infinity for that of the series: days from it on that the lake lacks are added to the ranges. */
  readonly sinceDay?: number;
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
 * The request with the settings of the held series, where none was given. Those of other series of the dataset count for a series
 * without an object of this format, unless the request is exact.
 */
export async function withHeldSettings(
  exchange: Exchange,
  request: SelectedSeries,
  held: Manifest,
  sharedOf: DatasetSettings,
): Promise<SelectedSeries> {
  const { series, given, rest, ...others } = request;
  if (given === undefined) return request;
  const own = continuedSettings(request.settings, given, held);
  const isNew = held[own.format].size === 0 && request.exact !== true;
  const shared = isNew ? await sharedOf(series, own.format) : undefined;
  const taken = SHARED.filter((name) => shared !== undefined && !given.has(name));
  const settings = { ...own, ...Object.fromEntries(taken.map((name) => [name, shared?.[name]])) };
  const spec = findDataset(exchange, series.market, series.dataset);
  const isChosen = spec === undefined || request.rewrites !== undefined;
  const cadences = isChosen ? request.cadences : cadencesOf(spec, series.interval, settings.cadence);
  // Files of the archive never come from REST.
  return {
    ...others,
    series,
    settings,
    cadences,
    ...(rest === undefined || settings.format === 'zip' ? {} : { rest }),
  };
}

/** They decide about the types of the columns. */
const SHARED = ['timestamps', 'numbers'] as const;
type SharedSettings = Pick<Settings, (typeof SHARED)[number]>;

/** The settings of the first held series of a dataset and format; undefined without one. Rejects like `readManifest`. */
export type DatasetSettings = (series: Series, format: Format) => Promise<SharedSettings | undefined>;

export function datasetSettings({
  root,
  exchange,
  manifests,
}: Pick<PlanContext, 'root' | 'exchange' | 'manifests'>): DatasetSettings {
  const once = memoized<SharedSettings | undefined>();
  return ({ market, dataset }, format) =>
    once(`${market} ${dataset} ${format}`, async () => {
      for await (const series of knownSeries({ root, exchange }, market, safeName(dataset))) {
        const held = await manifests.of(join(root, seriesFolder(exchange.name, series)));
        const settings = held[format].newest()?.settings;
        if (settings !== undefined) return settings;
      }
      return undefined;
    });
}

/** The series of a market, or of a folder of it, that have a manifest. */
export async function* knownSeries(
  { root, exchange }: Pick<PlanContext, 'root' | 'exchange'>,
  ...folders: readonly string[]
): AsyncGenerator<Series> {
  for await (const path of manifestsBelow(root, [exchange.name, ...folders].join('/'))) {
    const series = seriesAt(exchange, path);
    if (series !== undefined) yield series;
  }
}

/** The folders of series, relative to the root, that have a manifest: with and without the folder of an interval. */
async function* manifestsBelow(root: string, folder: string): AsyncGenerator<string> {
  const { files, folders } = listEntries(await checkedFolder(root, `${FOLDERS.manifests}/${folder}`));
  for (const file of files)
    if (file.endsWith(MANIFEST_ENDING)) yield `${folder}/${file.slice(0, -MANIFEST_ENDING.length)}`;
  for (const name of folders) yield* manifestsBelow(root, `${folder}/${name}`);
}
