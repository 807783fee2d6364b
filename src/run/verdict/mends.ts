/** Which verbs may mend a gap, for the commands that `check` and `coverage` suggest. */
import { DAY_SECONDS } from '../../model/units.js';
import { type Gap } from '../../lake/catalogue/gap.js';
import type { Format, layerName } from '../../model/task.js';
import { firstDayOfRest } from '../../plan/select/rest-offer.js';
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset, hasLongBars, isArchived } from '../../exchange/exchange-spec.js';

/** `run`: a run of the order may have it. `repair`: REST may have rows that held objects lack. A gap without either was asked for, and cannot be had. */
export type Mend = 'run' | 'repair';

export type MendSources = ReturnType<typeof mendSources>;

export function mendSources(
  { market, dataset, interval, format }: Parameters<typeof layerName>[0] & { format: Format | undefined },
  exchange: Exchange,
  nowMs: number,
) {
  const spec = findDataset(exchange, market, dataset);
  const layer = interval === undefined ? {} : { interval };
  const series = { market, dataset, ...layer, symbol: '' };
  return {
    hasArchive: spec !== undefined && isArchived(spec),
    // A run takes them in place of a month that lacks whole days.
    hasDays: spec?.cadences.includes('daily') === true,
    // The second from which rows of REST may fill gaps.
    restFrom:
      spec?.rest === undefined || format === 'zip' || hasLongBars(spec, interval)
        ? Infinity
        : firstDayOfRest(series, { exchange, nowMs }) * DAY_SECONDS,
  };
}

/** What may mend a gap. The archive was asked for the days of a hole: `repair` asks REST for them, once, and for the rows that held objects lack. */
export function mendsOf(
  { state, reason, isRestAsked, isOfMonth, fromSeconds: from, toSeconds: to }: Gap,
  { hasArchive, hasDays, restFrom }: MendSources,
): Mend[] {
  const hasRest = to > restFrom;
  if ((!hasArchive && !hasRest) || reason === 'cut') return [];
  if (reason === 'hole') return hasRest && isRestAsked !== true ? ['repair'] : [];
  if (reason === 'missing') return ['repair'];
  if (state !== 'short') return ['run'];
  const mends: Mend[] = isOfMonth === true && hasDays && to - from >= DAY_SECONDS ? ['run'] : [];
  return hasRest ? [...mends, 'repair'] : mends;
}
