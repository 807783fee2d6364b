/** The Python program that loads candles and trades of the lake into a catalogue of nautilus_trader with its own wranglers. */
import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { LakeFile } from '../../lake/catalogue/lake-file.js';
import { packageFile } from '../../files/package-file.js';
import { dayText } from '../../model/calendar.js';
import { HOUR_MS, MINUTE_MS, DAY_MS } from '../../model/units.js';
import { seriesName } from '../../model/task.js';
import { isSettled, pairOf } from '../../exchange/pairs.js';
import type { Exchange } from '../../exchange/exchange.js';
import { intervalMs } from '../../exchange/exchange-spec.js';
import type { ExportProgram, ExportFile, Refused, SeriesRows } from './export-file.js';

export const NAUTILUS: ExportProgram = {
  name: 'nautilus-loader',
  datasets: ['klines', 'trades', 'aggTrades'],
  groupBy: 'dataset',
  files: ({ sources, exchange }) => sources.map((source) => exportFileOf(source, exchange)),
  script: nautilusScript,
};

/** Steps and units of bar types, by length. Longer bars have no fixed unit there. */
const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [DAY_MS, 'DAY'],
  [HOUR_MS, 'HOUR'],
  [MINUTE_MS, 'MINUTE'],
  [1000, 'SECOND'],
];

/** `5-MINUTE`; undefined for longer units. */
function barStep(interval: string): string | undefined {
  const ms = intervalMs(interval);
  const [length = 1, unit] = UNITS.find(([size]) => ms % size === 0) ?? [];
  return unit && `${ms / length}-${unit}`;
}

function exportFileOf(source: SeriesRows, exchange: Exchange): ExportFile | Refused {
  const { series } = source;
  const { market, symbol, interval } = series;
  const pair = pairOf(exchange, market, symbol);
  if (isSettled(symbol)) return { series, reason: 'a settled contract has no instrument' };
  if (pair === undefined) return { series, reason: 'base and quote asset are not known' };
  if (pair.expiry !== undefined)
    return { series, reason: 'the loader has no instruments of contracts that end' };
  if (interval !== undefined && barStep(interval) === undefined)
    return { series, reason: `nautilus_trader has no bar type for ${interval}` };
  return { path: seriesName(series), sources: [source], select: 'FROM r0', form: { copy: '' } };
}

const PROGRAM = packageFile('config/nautilus-loader.py');

/** The program. Each source has a file. */
function nautilusScript(sources: readonly SeriesRows[], exchange: Exchange): string {
  const rows = sources.map(({ series, files }) => {
    const { base, quote, settle } = pairOf(exchange, series.market, series.symbol) ?? {};
    const step = series.interval === undefined ? '' : barStep(series.interval);
    const cells = [series.symbol, base, quote, settle, series.dataset, step];
    return `    (${[...cells.map(pythonText), pythonFiles(files)].join(', ')}),`;
  });
  const { from, to } = sources[0]?.range ?? {};
  const days = [from, to].map((day) => pythonText(day === undefined ? undefined : dayText(day)));
  const values = { '@SERIES@': `[\n${rows.join('\n')}\n]`, '@RANGE@': `(${days.join(', ')})` };
  const program = readFileSync(PROGRAM, 'utf8');
  return program.replace(/@SERIES@|@RANGE@/g, (name) => values[name as keyof typeof values]);
}

/** A string literal of Python. Undefined is None. */
function pythonText(text: string | undefined): string {
  // JSON escapes are escapes of Python too, except that a lone surrogate stays as it is.
  return text === undefined ? 'None' : JSON.stringify(text);
}

/** The folder and the list of the files of a series, as two values of Python. All files of a series are in one folder. */
function pythonFiles(files: readonly LakeFile[]): string {
  const names = files.map(({ path, settings }) => {
    const name = pythonText(basename(path));
    return settings.format === 'csv' ? `(${name}, ${pythonText(settings.timestamps)})` : name;
  });
  return `${pythonText(dirname(files[0]?.path ?? ''))}, [${names.join(', ')}]`;
}
