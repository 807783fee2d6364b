/** What a new file would lose of the file in its place. */
import { dayText, parseDay } from '../model/calendar.js';
import { numberText } from '../model/units.js';
import type { FileLine } from './provenance.js';

/** Which days or series a new file would lose; undefined if it has all of the present one. */
export function lostText(
  present: FileLine,
  { from, to, sources }: Pick<FileLine, 'from' | 'to' | 'sources'>,
): string | undefined {
  if (from > present.from || to < present.to)
    return `the file covers ${present.from} to ${lastDay(present.to)}, and would then cover ${from} to ${lastDay(to)}; leave out the range to keep all days, or add --force`;
  const own = seriesOf(sources);
  const lost = [...seriesOf(present.sources)].filter(
    (series) => !own.has(series) && ![...own].some((other) => hasSameRows(series, other)),
  );
  return lost.length === 0
    ? undefined
    : `the file has ${lost.length} series that it would lose, for example ${lost[0] ?? ''}; select them too, or add --force`;
}

/** Why a file with fewer rows, which come from other series, does not replace the present one; undefined if it does. */
export function fewerRowsText(
  present: FileLine,
  { sources, rows }: Pick<FileLine, 'sources' | 'rows'>,
): string | undefined {
  const own = seriesOf(sources);
  const others = [...seriesOf(present.sources)].filter((series) => !own.has(series));
  if (others.length === 0 || rows >= present.rows) return undefined;
  return `the file has ${numberText(present.rows)} rows, also of ${others[0] ?? ''}, and would then have ${numberText(rows)}; name the series with --dataset or --interval, or add --force`;
}

/** The folders of the sources. */
function seriesOf(sources: FileLine['sources']): Set<string> {
  return new Set(sources.map(({ file }) => file.slice(0, file.lastIndexOf('/'))));
}

/** Datasets of which each can stand for another one in a file. */
const ALIKE = [
  ['trades', 'aggTrades'],
  ['klines', 'bars'],
];

/** Whether a file of one series may come from another one of the same symbol: of another interval, or of a dataset alike. */
function hasSameRows(series: string, other: string): boolean {
  const [[venue, market, dataset = '', ...names], [ofVenue, ofMarket, ofDataset = '', ...others]] = [
    series.split('/'),
    other.split('/'),
  ];
  const isAlike =
    dataset === ofDataset || ALIKE.some((all) => all.includes(dataset) && all.includes(ofDataset));
  return isAlike && venue === ofVenue && market === ofMarket && names.at(-1) === others.at(-1);
}

/** The day before an exclusive end. */
function lastDay(to: string): string {
  return dayText((parseDay(to) ?? 0) - 1);
}
