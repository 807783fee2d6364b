/** A chart as a page with its own script, which zooms and shows the values under the pointer. */
import { dataElement, embedded, pageShell } from '../page/shell.js';
import type { Chart } from './chart.js';
import type { Bar } from './read-bars.js';

/** The largest number of steps. The script joins candles that would be narrower than three pixels. */
export const MOST_STEPS = 2000;

export function chartHtml(chart: Chart): string[] {
  const shell = pageShell('plot');
  const data = dataElement('plot');
  return [shell.before, data.before, embedded(chartData(chart)), data.after, shell.after];
}

/** `assets/plot/data.d.ts` has its type for the script. */
function chartData(chart: Chart): object {
  const { kind, title, subtitle, figures, notes, hasVolume, bars, grid } = chart;
  return {
    kind,
    title,
    subtitle,
    figures,
    notes,
    hasVolume,
    // Candles stand at the start of their step, also where its first row is missing.
    bars: bars.map((bar) => [
      kind === 'candles' ? grid.startOf(bar.at) : bar.first,
      kind === 'candles' ? grid.startOf(bar.at + 1) : bar.last,
      bar.open,
      bar.high,
      bar.low,
      bar.close,
      bar.volume,
    ]),
    breaks: breaksOf(chart),
  };
}

/** The indices of bars before which a line is not joined. */
function breaksOf({ bars, isJoined }: Chart): number[] {
  return bars.flatMap((bar: Bar, at) => {
    const before = bars[at - 1];
    return before === undefined || isJoined(before, bar) ? [] : [at];
  });
}
