/** The lists that need no request: markets and datasets. */
import { reachText } from '../../exchange/describe.js';
import { datasetsOf, intervalsOf, isArchived, isMade, marketNames } from '../../exchange/exchange-spec.js';
import type { DatasetSpec, ExchangeSpec } from '../../exchange/exchange-spec.js';
import { periodText } from '../../model/calendar.js';
import type { Cadence, Market } from '../../model/task.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { marketsOf } from '../../plan/select/select-datasets.js';
import { textOf, type Ends, type KnownItems } from './list-items.js';

export function* markets({ exchange }: VerbRequest<never>): KnownItems<'markets'> {
  for (const [market, { title, datasets: has }] of Object.entries(exchange.markets)) {
    const names = Object.keys(has);
    yield { cells: [market, title, names.join(',')], fields: { market, title, datasets: names } };
  }
  return [];
}

/** Datasets of the markets of `--market`, else of all markets. */
export function* datasets({ exchange, resolved }: VerbRequest<'market'>): KnownItems<'datasets'> {
  const { options, origins } = resolved;
  for (const market of origins.market === 'default' ? marketNames(exchange) : marketsOf(exchange, options)) {
    for (const spec of datasetsOf(exchange, market)) {
      const { name, title, cadences, partition, removed } = spec;
      const intervals = intervalsOf(spec) ?? [];
      const rest = spec.rest !== undefined;
      const sources = isMade(spec) ? 'lake' : [...cadences, ...(rest ? ['rest'] : [])].join(',');
      const span = spanText(exchange, market, spec);
      const ends = cadences.map((cadence): [Cadence, Ends] => {
        const { first, last } = spec.spans[cadence] ?? {};
        return [cadence, { first: textOf(first), last: textOf(last) }];
      });
      const where = { dataset: name, market, title, cadences: Object.fromEntries(ends), rest };
      yield {
        cells: [name, market, sources, span, intervals.join(',') || '-', title],
        fields: { ...where, intervals, partition, removed },
      };
    }
  }
  return [];
}

function spanText(exchange: ExchangeSpec, market: Market, spec: DatasetSpec): string {
  if (isMade(spec)) return 'made by cryptodl bars';
  if (!isArchived(spec)) return reachText(exchange, market, spec);
  const { first, last } = spec.spans[spec.cadences[0] ?? 'daily'] ?? {};
  const end = spec.removed ? 'removed' : last === undefined ? 'now' : periodText(last);
  return `${first === undefined ? '?' : periodText(first)}…${end}`;
}
