/** The request of a verb, from the command line or from the library: the exchange, the options, and the surroundings of the call. */
import type { Clock } from '../../model/clock.js';
import type { SharedResources } from '../../model/io.js';
import type { Observer } from '../../model/observer.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { Surroundings } from '../../files/environment.js';
import type { FlagName } from './flags.js';
import type { Resolved } from './resolve.js';
import type { ReadList } from './symbols.js';

export interface VerbRequest<Names extends FlagName = FlagName> {
  readonly exchange: Exchange;
  readonly resolved: Resolved<Names>;
  readonly surroundings: Surroundings;
  readonly read: ReadList;
  readonly observer: Observer;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly common?: SharedResources | undefined;
}
