/** Compares the clock of this machine with the `Date` headers of the hosts. */
import { durationText } from '../model/units.js';
import { checkResult } from './check-result.js';
import type { CheckResult } from './check-result.js';

/** The `Date` header of one response, with its sending and receiving time by the local clock. Epoch milliseconds. */
export interface ServerDate {
  readonly host: string;
  readonly dateMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A `Date` header has whole seconds (RFC 9110, section 5.6.7). */
const SECOND_MS = 1000;
const WARN_MS = 1000;
const FAIL_MS = 60_000;

const WHY =
  'set the clock, for example with timedatectl set-ntp true: "today", publication times and the validity of certificates depend on it';

/** Warns when the clock differs by more than a second from every host; fails from a minute on. */
export function checkClock(dates: readonly ServerDate[]): CheckResult {
  const differences = [...new Set(dates.map(({ host }) => host))].map((host) => ({
    host,
    ms: differenceOf(dates.filter((answer) => answer.host === host)),
  }));
  const [first, ...others] = [...differences].sort((a, b) => Math.abs(a.ms) - Math.abs(b.ms));
  if (first === undefined)
    return checkResult('clock', 'warn', 'unknown: no host sent a Date header', {
      next: 'see the lines above',
    });
  const differenceMs = Math.round(first.ms);
  const figures = { host: first.host, differenceMs };
  const aheadOr = first.ms > 0 ? 'behind' : 'ahead of';
  const found = `${durationText(Math.abs(first.ms))} ${aheadOr} that of ${first.host}`;
  if (Math.abs(first.ms) > FAIL_MS) return checkResult('clock', 'fail', found, { figures, next: WHY });
  if (Math.abs(first.ms) > WARN_MS) return checkResult('clock', 'warn', found, { figures, next: WHY });
  // When one host agrees with the local clock, another host that differs is probably wrong.
  const odd = others.findLast(({ ms }) => Math.abs(ms) > FAIL_MS);
  if (odd === undefined)
    return checkResult('clock', 'ok', `within ${durationText(WARN_MS)} of that of ${first.host}`, {
      figures,
    });
  return checkResult(
    'clock',
    'warn',
    `equal to that of ${first.host}, but ${odd.host} differs by ${durationText(Math.abs(odd.ms))}`,
    { figures, next: 'check for a cache or proxy in front of that host that serves old responses' },
  );
}

/** The least difference (host minus local) that explains all responses; 0 when the clocks may be equal. */
function differenceOf(dates: readonly ServerDate[]): number {
  const least = Math.max(...dates.map(({ dateMs, receivedAt }) => dateMs - receivedAt));
  const most = Math.min(...dates.map(({ dateMs, sentAt }) => dateMs + SECOND_MS - sentAt));
  if (least > 0) return least;
  return most < 0 ? most : 0;
}
