/** Selects the series and months of an audit: those of the flags, or those that the lake holds. */
import { join } from 'node:path';
import { monthOf } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { seriesFolder } from '../lake/layout.js';
import { readManifest } from '../lake/manifest.js';
import type { Resolved } from '../options/resolve.js';
import type { ReadList } from '../options/symbols.js';
import { heldSeries } from '../select/held-series.js';
import { isRangeGiven, resolveRange } from '../select/date-range.js';
import type { Series } from '../model/task.js';
import { findDataset, isArchived } from '../source/venue.js';
import { isChosen } from '../select/continue-lake.js';
import { givenFlags } from '../select/selection.js';
import type { Session } from '../download/session.js';
import { selectSeries } from '../select/select-series.js';

export interface AuditedSeries {
  readonly series: Series;
  /** Months `[from, to)`. Undefined: from the first object of the series. */
  readonly from: number | undefined;
  readonly to: number;
}

/** Throws usage errors, also for a lake without matching series. */
export async function selectAudit(
  session: Session,
  resolved: Resolved,
  read: ReadList,
): Promise<AuditedSeries[]> {
  const isGiven = isRangeGiven(session.options);
  if (session.options.symbols === undefined) return heldMonths(session, givenFlags(resolved));
  // By default, the last complete month.
  const options = isGiven ? session.options : { ...session.options, months: 1 };
  const { requests } = await selectSeries({ ...session, options }, { ...resolved, options }, read);
  return requests.map(({ series, ranges }) => {
    const from = ranges[0]?.from;
    return {
      series,
      from: from === undefined ? undefined : monthOf(from),
      to: monthOf((ranges.at(-1)?.to ?? 0) - 1) + 1,
    };
  });
}

async function heldMonths(session: Session, given: ReadonlySet<string>): Promise<AuditedSeries[]> {
  const { options, paths, venue, observer } = session;
  const warn = observer.warn.bind(observer);
  const range = isRangeGiven(options) ? resolveRange(options, session.nowMs, venue) : undefined;
  const audited: AuditedSeries[] = [];
  for await (const series of heldSeries(paths.root, venue, warn)) {
    const spec = findDataset(venue, series.market, series.dataset);
    if (spec === undefined || !isArchived(spec) || !isChosen(series, session, given)) continue;
    const { parquet, csv, zip } = await readManifest(
      join(paths.root, seriesFolder(venue.name, series)),
      venue.archive,
    );
    const spans = [parquet, csv, zip].flatMap((held) => held.spans());
    if (spans.length === 0) continue;
    const first = Math.min(...spans.map((span) => span.from));
    const end = Math.max(...spans.map((span) => span.to));
    const from = Math.max(monthOf(first), range?.from === undefined ? 0 : monthOf(range.from));
    const to = monthOf(Math.min(end, range?.to ?? end) - 1) + 1;
    if (from < to) audited.push({ series, from, to });
  }
  if (audited.length > 0) return audited;
  throw usage(
    `no --symbols given, and ${options.out} holds no archive series that matches the flags`,
    "name symbols: --symbols BTCUSDT,ETHUSDT or --symbols '*USDT'",
  );
}
