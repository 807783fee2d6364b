/** Selects the series and months of an audit: those of the flags, or those that the lake holds. */
import { readHeld } from '../catalogue/read-series.js';
import type { Session } from '../download/session.js';
import { monthOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { FORMATS } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { givenRange, isRangeGiven } from '../select/date-range.js';
import { readVerbLake, selectGiven } from '../select/held-series.js';
import { selectSeries } from '../select/select-series.js';
import { findDataset, isArchived } from '../source/venue.js';

export interface AuditedSeries {
  readonly series: Series;
  /** Months `[from, to)`. Undefined: from the first object of the series. */
  readonly from: number | undefined;
  readonly to: number;
}

/** Throws usage errors, also for a lake without matching series. */
export async function selectAudit(session: Session, request: VerbRequest): Promise<AuditedSeries[]> {
  const { resolved, read } = request;
  if (session.options.symbols === undefined) return heldMonths(session, request);
  // By default, the last complete month.
  const options = isRangeGiven(session.options) ? session.options : { ...session.options, months: 1 };
  const { requests } = await selectSeries({ ...session, options }, { ...resolved, options }, read, 'vision');
  return requests.map(({ series, ranges }) => {
    const from = ranges[0]?.from;
    return {
      series,
      from: from === undefined ? undefined : monthOf(from),
      to: monthOf((ranges.at(-1)?.to ?? 0) - 1) + 1,
    };
  });
}

/** The months for which the lake holds data. */
async function heldMonths(session: Session, request: VerbRequest): Promise<AuditedSeries[]> {
  const { options, venue, nowMs } = session;
  const range = givenRange(options, nowMs, venue);
  const { root, held } = await readVerbLake(request);
  const audited: AuditedSeries[] = [];
  for (const series of await selectGiven(held, request)) {
    const spec = findDataset(venue, series.market, series.dataset);
    if (spec === undefined || !isArchived(spec)) continue;
    const manifest = await readHeld(root, venue, series);
    const spans = FORMATS.flatMap((format) => manifest[format].spans());
    const first = Math.max(Math.min(...spans.map((span) => span.from)), range?.from ?? 0);
    const end = Math.min(Math.max(...spans.map((span) => span.to)), range?.to ?? Infinity);
    if (first < end) audited.push({ series, from: monthOf(first), to: monthOf(end - 1) + 1 });
  }
  if (audited.length > 0) return audited;
  throw usage(
    `${options.out} holds no series of the archive in the range`,
    "name symbols: --symbols BTCUSDT,ETHUSDT or --symbols '*USDT'",
  );
}
