/** The series and months that an audit of the archive reads. */
import { usage } from '../../model/errors.js';
import { FORMATS, type Series } from '../../model/task.js';
import { findDataset, isArchived } from '../../exchange/exchange-spec.js';
import type { RunSession } from '../../run/session/session.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import type { HeldFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange, isRangeGiven } from '../../plan/select/date-range.js';
import { readVerbLake, selectGiven } from '../../plan/select/held-series.js';
import { selectSeries } from '../../plan/select/select-series.js';

export interface AuditedSeries {
  readonly series: Series;
  /** Days `[from, to)`, whose months are audited. Undefined: from the first object of the series. */
  readonly from: number | undefined;
  readonly to: number;
}

/** Throws usage errors, also for a lake without matching series. */
export async function selectAudit(
  session: RunSession,
  request: VerbRequest<HeldFlag>,
): Promise<AuditedSeries[]> {
  const { resolved, read } = request;
  if (session.options.symbols === undefined) return heldMonths(session, request);
  // By default, the last complete month.
  const options = isRangeGiven(session.options) ? session.options : { ...session.options, months: 1 };
  const { requests } = await selectSeries({ ...session, options }, resolved, read, 'vision');
  return requests.map(({ series, ranges }) => ({
    series,
    from: ranges[0]?.from,
    to: ranges.at(-1)?.to ?? 0,
  }));
}

async function heldMonths(session: RunSession, request: VerbRequest<HeldFlag>): Promise<AuditedSeries[]> {
  const { options, exchange, nowMs } = session;
  const range = givenRange(options, nowMs, exchange);
  const { root, held } = await readVerbLake(request);
  const audited: AuditedSeries[] = [];
  for (const series of await selectGiven(held, request)) {
    const spec = findDataset(exchange, series.market, series.dataset);
    if (spec === undefined || !isArchived(spec)) continue;
    const manifest = await readHeld(root, exchange, series);
    const spans = FORMATS.flatMap((format) => manifest[format].spans());
    const first = Math.max(Math.min(...spans.map((span) => span.from)), range?.from ?? 0);
    const end = Math.min(Math.max(...spans.map((span) => span.to)), range?.to ?? Infinity);
    if (first < end) audited.push({ series, from: first, to: end });
  }
  if (audited.length > 0) return audited;
  throw usage(
    `${options.out} holds no series of the archive in the range`,
    "name symbols: --symbols BTCUSDT,ETHUSDT or --symbols '*USDT'",
  );
}
