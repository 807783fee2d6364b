/** `--wait-for-publication`: checks less and less often whether the archive has the newest selected period of each series. */
import { dayOf, periodText, startOfDay, UTC } from '../../model/calendar.js';
import { seriesName } from '../../model/task.js';
import { instantText, listText } from '../../model/units.js';
import type { Until } from '../../plan/options/dates.js';
import { listOrProbe } from '../../plan/plan.js';
import type { RunSelection } from '../../plan/select/selection.js';
import type { RunSession } from '../session/session.js';
import { awaitedOf, unpublished, type Expected } from './unpublished-series.js';

const FIRST_DELAY_MS = 60_000;
const LONGEST_DELAY_MS = 600_000;
/** The last date that JavaScript can represent. */
const LAST_MS = 8.64e15;

export type WaitingSession = Pick<
  RunSession,
  'options' | 'clock' | 'observer' | 'stop' | 'nowMs' | 'currentMs' | 'exchange' | 'listing' | 'probe'
>;

/** Resolves when the periods are published, or at the end of the wait: the run then goes on with the published ones. */
export async function waitForPublication(
  session: WaitingSession,
  selection: Pick<RunSelection, 'requests' | 'hasListing'>,
): Promise<void> {
  const until = session.options.waitForPublication;
  // With `--revisions only`, the run takes new revisions of held objects and nothing else.
  if (until === undefined || session.options.revisions === 'only') return;
  const { clock, observer, stop } = session;
  const untilMs = Math.min(epochOf(until, session.nowMs), LAST_MS);
  const untilText = `${instantText(untilMs).slice(0, 16)} UTC`;
  const { exchange } = session;
  const today = dayOf(session.nowMs, exchange);
  const context = { exchange, today, listSeries: listOrProbe(session, selection.hasListing) };
  let left = await unpublished(context, awaitedOf(context, selection.requests));
  let delayMs = FIRST_DELAY_MS;
  let isTold = false;
  while (left.length > 0) {
    const leftMs = untilMs - session.currentMs();
    if (leftMs <= 0) {
      observer.waiting(`not published by ${untilText}: ${described(left)}; continuing without them`);
      return;
    }
    if (!isTold)
      observer.waiting(
        `waiting until ${untilText} at the latest (--wait-for-publication): the archive has no ${described(left)} yet`,
      );
    isTold = true;
    observer.event('not-published', { series: left.length, delayMs: Math.min(delayMs, leftMs) });
    await clock.sleep(Math.min(delayMs, leftMs), stop.signal);
    delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
    left = await unpublished(context, left);
  }
}

/** The end of the wait in epoch ms. A time of day belongs to the UTC day on which the run began; if it has passed, the run does not wait. */
function epochOf(until: Until, nowMs: number): number {
  switch (until.kind) {
    case 'time':
      return startOfDay(dayOf(nowMs, UTC), UTC) + until.sinceMidnightMs;
    case 'instant':
      return until.epochMs;
    case 'duration':
      return nowMs + until.durationMs;
  }
}

/** `um klines 1m BTCUSDT 2026-11-20 and 3 more` */
function described(awaited: readonly Expected[]): string {
  const names = awaited.map(({ series, period }) => `${seriesName(series)} ${periodText(period)}`);
  return listText(names, 1);
}
