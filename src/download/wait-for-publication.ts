/** `--wait-for-publication`: the archive is asked at a falling rate whether it has what the run is for. */
import { DAY_MS, dayOf, periodText } from '../model/calendar.js';
import type { Until } from '../options/parsers.js';
import { listOrProbe } from '../plan/plan.js';
import { awaitedOf, unpublished } from '../plan/publication.js';
import type { Awaited } from '../plan/publication.js';
import { seriesName } from '../model/task.js';
import type { Session } from './session.js';
import type { Wanted } from '../select/selection.js';
import { numberText } from '../model/units.js';

const FIRST_DELAY_MS = 60_000;
const LONGEST_DELAY_MS = 600_000;
/** No date can be written beyond it. */
const LAST_MS = 8.64e15;

/** What of a session the wait needs. */
export type Waiting = Pick<
  Session,
  'options' | 'clock' | 'observer' | 'stop' | 'nowMs' | 'currentMs' | 'venue' | 'listing' | 'probe'
>;

/** Resolves when it is published, or when the time is up: the run then goes on with what is there. */
export async function waitForPublication(
  session: Waiting,
  wanted: Pick<Wanted, 'requests' | 'hasListing'>,
): Promise<void> {
  const until = session.options.waitForPublication;
  // Of what is held, only new revisions are wanted.
  if (until === undefined || session.options.revisions === 'only') return;
  const { clock, observer, stop } = session;
  const untilMs = Math.min(epochOf(until, session.nowMs), LAST_MS);
  const missing = missingOf(session, wanted);
  let left = await missing(awaitedOf(session.venue, dayOf(session.nowMs), wanted.requests));
  let delayMs = FIRST_DELAY_MS;
  let isTold = false;
  while (left.length > 0) {
    const leftMs = untilMs - session.currentMs();
    if (leftMs <= 0) {
      observer.waiting(`not published by ${instantText(untilMs)}: ${described(left)}; going on without`);
      return;
    }
    if (!isTold)
      observer.waiting(
        `waiting until ${instantText(untilMs)} at the latest (--wait-for-publication): the archive has no ${described(left)} yet`,
      );
    isTold = true;
    observer.event('not-published', { series: left.length, delayMs: Math.min(delayMs, leftMs) });
    await clock.sleep(Math.min(delayMs, leftMs), stop.signal);
    delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
    left = await missing(left);
  }
}

/** A time of day is that of the day on which the run began: when it has passed, there is nothing to wait for. */
function epochOf(until: Until, nowMs: number): number {
  switch (until.kind) {
    case 'time':
      return dayOf(nowMs) * DAY_MS + until.sinceMidnightMs;
    case 'instant':
      return until.epochMs;
    case 'duration':
      return nowMs + until.durationMs;
  }
}

function missingOf(
  session: Waiting,
  { hasListing }: Pick<Wanted, 'hasListing'>,
): (awaited: Awaited[]) => Promise<Awaited[]> {
  const { venue, listing, probe, observer, nowMs } = session;
  const listSeries = listOrProbe({
    venue,
    listing: hasListing ? listing : undefined,
    probe,
    warn: (message) => {
      observer.warn(message);
    },
  });
  return (awaited) => unpublished({ venue, today: dayOf(nowMs), listSeries }, awaited);
}

/** `um klines 1m BTCUSDT 2026-11-20 and 3 more` */
function described(awaited: readonly Awaited[]): string {
  const [first] = awaited;
  if (first === undefined) return 'nothing';
  const more = awaited.length > 1 ? ` and ${numberText(awaited.length - 1)} more` : '';
  return `${seriesName(first.series)} ${periodText(first.period)}${more}`;
}

function instantText(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
