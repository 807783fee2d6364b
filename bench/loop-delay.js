/** `node --import loop-delay.js`: at its end the process writes the 99th percentile of its event loop's delay, in ms, to $LOOP_DELAY_FILE. */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const RESOLUTION_MS = 5;
const file = process.env['LOOP_DELAY_FILE'];
if (file !== undefined) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  // The histogram has whole pauses; each is at least as long as the resolution.
  process.on('exit', () => writeFileSync(file, String(delays.percentile(99) / 1e6 - RESOLUTION_MS)));
}
