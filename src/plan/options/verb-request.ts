/** The request of a verb, from the command line or from the library: the exchange, the options, and the surroundings of the call. */
import type { Clock } from '../../model/clock.js';
import type { SharedResources } from '../../model/shared-resources.js';
import type { Observer } from '../../model/observer.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { Surroundings } from '../../files/environment.js';
import type * as sets from './flag-sets.js';
import type { FlagName } from './flags.js';
import type { Resolved } from './resolve.js';

export interface VerbRequest<Names extends FlagName = FlagName> {
  readonly exchange: Exchange;
  readonly resolved: Resolved<Names>;
  readonly surroundings: Surroundings;
  readonly observer: Observer;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly common?: SharedResources | undefined;
}

/** The time from which a verb counts: `--now`, else that of the clock at this call, because a run may last for hours. Epoch milliseconds. */
export const nowMsOf = ({ resolved, clock }: Pick<VerbRequest<'now'>, 'resolved' | 'clock'>): number =>
  resolved.options.nowMs ?? clock.now();

// The flags that code reads for several verbs.

type In<Flags extends readonly FlagName[]> = Flags[number];

export type RangeFlag = In<typeof sets.RANGE_FLAGS>;

/** The selection among the series of a lake. */
export type HeldFlag = In<typeof sets.SERIES_FLAGS> | 'out' | 'skip-unknown';

/** A query on the lake. */
export type QueryFlag = HeldFlag | RangeFlag | 'now' | 'temp-dir';

/** The coverage of the lake. */
export type CoverageFlag = HeldFlag | RangeFlag | 'by' | 'format' | 'min' | 'now' | 'shard';

/** The requests of a session, and its lake. */
export type SessionFlag =
  | In<typeof sets.REQUEST_FLAGS | typeof sets.REST_FLAGS>
  | 'concurrency'
  | 'dry-run'
  | 'fill'
  | 'join'
  | 'market'
  | 'max-duration'
  | 'out'
  | 'temp-dir'
  | 'wait-lock';

/** Everything that runs read, of whichever verb. */
export type RunFlag =
  | SessionFlag
  | In<
      typeof sets.DOWNLOAD_FLAGS | typeof sets.SAVE_FLAGS | typeof sets.FORM_FLAGS | typeof sets.OBJECT_FLAGS
    >
  | 'deep'
  | 'exact'
  | 'include-today'
  | 'skip-unknown';
