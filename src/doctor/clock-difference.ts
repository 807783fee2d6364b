/** How far this machine's clock is from what the hosts say in their `Date` headers. */
import { durationText } from '../model/units.js';
import { finding } from './finding.js';
import type { Finding } from './finding.js';

/** One answer: what its header said, and when it was asked and here by our clock. Epoch milliseconds. */
export interface ToldTime {
  readonly host: string;
  readonly dateMs: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A `Date` header has whole seconds. */
const SECOND_MS = 1000;
const WARN_MS = 1000;
const FAIL_MS = 60_000;

const WHY =
  '"today", what is published yet and whether certificates are valid go by it: set it, for example with timedatectl set-ntp true';

export function checkClock(told: readonly ToldTime[]): Finding {
  const differences = [...new Set(told.map(({ host }) => host))].map((host) => ({
    host,
    ms: differenceOf(told.filter((answer) => answer.host === host)),
  }));
  const [first, ...others] = [...differences].sort((a, b) => Math.abs(a.ms) - Math.abs(b.ms));
  if (first === undefined)
    return finding('clock', 'warn', 'no host has told the time', { next: 'see the lines above' });
  const differenceMs = Math.round(first.ms);
  const figures = { host: first.host, differenceMs };
  const aheadOr = first.ms > 0 ? 'behind' : 'ahead of';
  const found = `${durationText(Math.abs(first.ms))} ${aheadOr} that of ${first.host}`;
  if (Math.abs(first.ms) > FAIL_MS) return finding('clock', 'fail', found, { figures, next: WHY });
  if (Math.abs(first.ms) > WARN_MS) return finding('clock', 'warn', found, { figures, next: WHY });
  // One that agrees with ours makes it likely that another one is wrong.
  const odd = others.findLast(({ ms }) => Math.abs(ms) > FAIL_MS);
  if (odd === undefined)
    return finding('clock', 'ok', `within ${durationText(WARN_MS)} of that of ${first.host}`, { figures });
  return finding(
    'clock',
    'warn',
    `as that of ${first.host}, but ${odd.host} differs by ${durationText(Math.abs(odd.ms))}`,
    { figures, next: 'a cache or proxy in front of that host may keep old answers' },
  );
}

/** Their clock minus ours, no more than is certain: 0 when ours may be right. */
function differenceOf(told: readonly ToldTime[]): number {
  const least = Math.max(...told.map(({ dateMs, receivedAt }) => dateMs - receivedAt));
  const most = Math.min(...told.map(({ dateMs, sentAt }) => dateMs + SECOND_MS - sentAt));
  if (least > 0) return least;
  return most < 0 ? most : 0;
}
