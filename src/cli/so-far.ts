/** How far long work has come, for those who watch verbs that have no bar. */
import { systemClock } from '../clock.js';
import type { Io } from '../io.js';
import type { Options } from '../options/flags.js';
import { printLines } from '../printable.js';

const EVERY_MS = 10_000;

/** Says what it is given now and then, and never with --quiet. */
export function tellSoFar({ quiet }: Pick<Options, 'quiet'>, io: Io): (text: () => string) => void {
  let saidAt = systemClock.monotonic();
  return (text) => {
    const now = systemClock.monotonic();
    if (quiet === true || now - saidAt < EVERY_MS) return;
    saidAt = now;
    printLines(io.stderr, [`${text()} so far`]);
  };
}
