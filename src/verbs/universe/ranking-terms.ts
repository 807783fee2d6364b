/** What a universe ranks, and by what: everything that is known before the lake is read. */
import { dayOf } from '../../model/calendar.js';
import { DAY_MS } from '../../model/units.js';
import { MEASURES } from '../../plan/options/periods.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { usage } from '../../model/errors.js';
import type { RANKING_FLAGS } from '../../plan/options/flag-sets.js';
import { nowMsOf, type HeldFlag, type VerbRequest } from '../../plan/options/verb-request.js';
import { refuseInLake } from '../../plan/select/held-series.js';
import { oneMarket } from '../../plan/select/select-datasets.js';
import { absolutePath } from '../../text/printable.js';
import { DATASET, type HeldKlines } from './held-klines.js';

export type RankingTerms = Awaited<ReturnType<typeof rankingTerms>>;

export type Ranking = RankingTerms &
  HeldKlines & {
    /** First days of the periods, in order. */
    readonly starts: readonly number[];
  };

export type UniverseFlag = HeldFlag | (typeof RANKING_FLAGS)[number] | 'now' | 'quiet' | 'temp-dir';

/** Everything that is known before the lake is read. Throws usage errors, also for a market without klines or a column that is not comparable. */
export async function rankingTerms(request: VerbRequest<UniverseFlag>) {
  const { exchange, observer, surroundings } = request;
  const { options } = request.resolved;
  const { as, by, every, from, minAgeMs = 0, to, top, windowMs } = options;
  const market = oneMarket(exchange, options, 'universe');
  const spec = findDataset(exchange, market, DATASET);
  if (spec === undefined) throw usage(`--market ${market} has no ${DATASET}`, 'choose another market');
  const unitOf = (name: string): string | undefined =>
    spec.columns.find((column) => column.name === name)?.unit;
  // The archive's quote_volume of coin-margined futures is in the base coin, and the size of a contract differs by symbol.
  if (unitOf('quote_volume') !== 'quote asset' && by !== 'count')
    throw usage(
      `--by ${by} is in ${unitOf(by) ?? 'another unit'} for ${market}, so it does not compare symbols`,
      '--by count ranks by the number of trades',
    );
  if (options.target === undefined && as === 'freqtrade')
    throw usage('--as freqtrade needs --target', 'for example --as freqtrade --target universe');
  const target = options.target === undefined ? '' : absolutePath(options.target, surroundings.home);
  if (target !== '') await refuseInLake(target, exchange.name);
  const today = dayOf(nowMsOf(request), spec);
  return {
    market,
    // Of its klines.
    spec,
    options,
    exchange,
    warn: observer.warn.bind(observer),
    by: MEASURES.find((measure) => measure === by) ?? MEASURES[0],
    top,
    every: every?.kind === 'calendar' ? every.period : ('month' as const),
    // Days before a period whose sums are ranked.
    window: windowMs / DAY_MS,
    // Days between the first day of a symbol and the period.
    minAge: minAgeMs / DAY_MS,
    // Days of the first and the last period.
    from: from?.kind === 'word' ? today - from.daysAgo : from?.firstDay,
    to: to?.kind === 'word' ? today - Math.max(1, to.daysAgo) : to?.lastDay,
    // Absolute; empty for the forms that are printed.
    target,
  };
}
