/** Checks of the clock and of the bans. */
import type { Bans } from '../../http/bans.js';
import { durationText, instantText } from '../../model/units.js';
import { checkResult, type CheckResult } from './check-machine.js';

/** The clock of a host minus the local one, in milliseconds. */
export interface ClockDifference {
  readonly host: string;
  readonly ms: number;
}

/** A `Date` header has whole seconds (RFC 9110, section 5.6.7). */
const SECOND_MS = 1000;
const FAIL_MS = 60_000;

/** Warns when the clock differs by more than a second from every host; fails from a minute on. */
export function checkClock(clocks: readonly ClockDifference[]): CheckResult {
  const [nearest] = clocks.toSorted((a, b) => Math.abs(a.ms) - Math.abs(b.ms));
  if (nearest === undefined)
    return checkResult('clock', 'warn', 'unknown: no host sent a Date header', {
      next: 'see the lines above',
    });
  const { host, ms } = nearest;
  if (Math.abs(ms) <= SECOND_MS)
    return checkResult('clock', 'ok', `within ${durationText(SECOND_MS)} of that of ${host}`);
  const found = `${durationText(Math.abs(ms))} ${ms > 0 ? 'behind' : 'ahead of'} that of ${host}`;
  const next =
    'set the clock, for example with timedatectl set-ntp true: "today", publication times and the validity of certificates depend on it';
  return checkResult('clock', Math.abs(ms) > FAIL_MS ? 'fail' : 'warn', found, { next });
}

/** The least difference (host minus local, in ms) that explains the answer; 0 when the clocks may be equal. */
export function differenceOf(dateMs: number, sentAt: number, receivedAt: number): number {
  const least = dateMs - receivedAt;
  const most = dateMs + SECOND_MS - sentAt;
  if (least > 0) return least;
  return Math.min(most, 0);
}

/** Fails while a ban is in force. */
export async function checkBans(bans: Pick<Bans, 'current'>): Promise<CheckResult> {
  const current = [...(await bans.current())].sort(([, a], [, b]) => b.until - a.until);
  const [longest] = current;
  if (longest === undefined) return checkResult('bans', 'ok', 'none in force');
  const texts = current.map(([place, { until }]) => `${place} until ${instantText(until)} UTC`);
  return checkResult('bans', 'fail', `${texts.join(', ')}: ${longest[1].why}`, {
    next: 'run again after that; until then, runs that need the host send no request and end with exit code 7 (--clear-bans HOST removes a wrong ban)',
  });
}

/** `--clear-bans HOST`: removes the bans of the host and reports the others. */
export async function clearBans(bans: Pick<Bans, 'clear' | 'current'>, host: string): Promise<CheckResult> {
  const places = await bans.clear(host);
  const left = [...(await bans.current()).keys()];
  if (left.some((place) => place.endsWith(` ${host}`)))
    return checkResult('bans', 'fail', `the bans of ${host} could not be removed`, {
      next: 'choose a writable --state-dir',
    });
  if (places.length > 0) return checkResult('bans', 'ok', `removed: ${places.join(', ')}`);
  const others = left.length === 0 ? '' : `; bans in force: ${left.join(', ')}`;
  return checkResult('bans', 'ok', `no ban of ${host} is in force${others}`);
}
