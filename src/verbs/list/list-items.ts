/** The items of the lists. */
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { periodText } from '../../model/calendar.js';
import type { SourceObject, Cadence, Market, Period, Series } from '../../model/task.js';
import type { ListName } from '../../plan/options/periods.js';
import type { HeldFlag, RangeFlag, SessionFlag } from '../../plan/options/verb-request.js';

export type ListFlag = SessionFlag | HeldFlag | RangeFlag | 'cadence' | 'long';

/** One item: cells for text, fields for programs. */
export interface ListItem<Fields = object> {
  readonly cells: readonly (string | number)[];
  readonly fields: Fields;
}

/** `2024-01-15` or `2024-01`; null if it is open or not known. */
export interface Ends {
  readonly first: string | null;
  readonly last: string | null;
}

/** First and last period, number and size of all objects of a symbol in the selected datasets. */
export interface Extent extends Ends {
  readonly objects: number;
  /** Sum of the sizes of the zips. */
  readonly bytes: number;
}

export interface ListFields {
  readonly markets: {
    readonly market: Market;
    readonly title: string;
    readonly datasets: readonly string[];
  };
  readonly datasets: {
    readonly dataset: string;
    readonly market: Market;
    readonly title: string;
    /** First and last period of the archive in each cadence. */
    readonly cadences: Readonly<Partial<Record<Cadence, Ends>>>;
    readonly rest: boolean;
    readonly intervals: readonly string[];
    /** The period of one file with `--partition auto`. */
    readonly partition: DatasetSpec['partition'];
    /** The exchange has stopped publishing it. */
    readonly removed: boolean;
  };
  /** The fields after `symbol` are present with `--long`. */
  readonly symbols: { readonly symbol: string } & Partial<Extent>;
  /** `period`: `2024-01-15` or `2024-01`. */
  readonly periods: Series &
    Pick<SourceObject, 'key' | 'bytes' | 'etag' | 'lastModified' | 'sidecarEtag'> & {
      readonly cadence: Cadence;
      readonly period: string;
    };
}

/** Returns further texts about the items. */
export type ListItems<Name extends ListName> = AsyncGenerator<ListItem<ListFields[Name]>, readonly string[]>;
export type KnownListItems<Name extends ListName> = Generator<ListItem<ListFields[Name]>, readonly string[]>;

export const textOf = (period: Period | undefined): string | null =>
  period === undefined ? null : periodText(period);
