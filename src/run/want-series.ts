/** `cryptodl vision`: from the What and When flags to the series that are planned. */
import { join } from 'node:path';
import { dayText, parseDay } from '../calendar.js';
import type { Resolved } from '../options/resolve.js';
import type { SeriesRequest } from '../plan/plan-series.js';
import { resolveRange } from '../plan/range.js';
import type { Range } from '../plan/range.js';
import { readPatterns, symbolLike } from '../plan/symbols.js';
import type { ReadList, Selection, SymbolPatterns } from '../plan/symbols.js';
import { createFailureReport } from '../report/failure-report.js';
import type { FailureReport } from '../report/failure-report.js';
import { shownPath } from '../shown-path.js';
import type { Format } from '../task.js';
import { endOfDataset } from '../venue/ended.js';
import { chooseDatasets } from './choose-datasets.js';
import type { ChosenDataset } from './choose-datasets.js';
import { chooseSymbols } from './choose-symbols.js';
import type { ChosenSymbols } from './choose-symbols.js';
import { continueLake } from './continue-lake.js';
import { reportHeader } from './plan-run.js';
import { endedNotes } from './refuse-ended.js';
import type { Session } from './session.js';
import { settingsOf } from './settings-of.js';
import type { Wanted } from './wanted.js';

/** Without --symbols, what the lake holds is continued. Throws usage errors. */
export async function wantSeries(session: Session, resolved: Resolved, read: ReadList): Promise<Wanted> {
  const { options, venue } = session;
  const given = new Set(
    Object.entries(resolved.origins).flatMap(([name, origin]) => (origin === 'default' ? [] : [name])),
  );
  const range = resolveRange(options, session.nowMs, parseDay(venue.firstDay) ?? 0);
  const datasets = chooseDatasets(venue, options);
  const report = reportOf(session, resolved);
  if (options.symbols === undefined)
    return { verb: 'vision', report, ...(await continueLake(session, range, given)) };
  const patterns = await readPatterns(options.symbols, read);
  const { selection, available } = await chooseSymbols(session, patterns, datasets);
  const requests = datasets.flatMap((dataset) => {
    const has = available?.get(dataset.spec.name);
    const symbols = selection.symbols.filter(
      (symbol) => has === undefined || has.has(symbol) || patterns.names.includes(symbol),
    );
    return symbols.map((symbol) => requestOf(session, dataset, symbol, range));
  });
  const ended = datasets.filter(({ spec }) => endOfDataset(spec) !== undefined);
  return {
    verb: 'vision',
    requests,
    hasListing: available !== undefined,
    ...describe(session, datasets),
    range: range.text,
    notes: [
      ...notesOf(selection, datasets, range),
      ...lackingNotes(patterns, datasets, available),
      ...endedNotes(venue, ended, range.to),
    ],
    ended,
    report,
  };
}

function reportOf(session: Session, { texts }: Resolved): FailureReport {
  const { failures } = session.options;
  const stamp = new Date(session.clock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return createFailureReport({
    path: failures ?? join(session.paths.failures, `vision-${stamp}.jsonl`),
    header: reportHeader(session, texts, 'vision'),
    mode: failures === undefined ? 'new' : 'overwrite',
  });
}

function requestOf(session: Session, dataset: ChosenDataset, symbol: string, range: Range): SeriesRequest {
  const { market, spec } = dataset;
  const interval = dataset.interval === undefined ? {} : { interval: dataset.interval };
  return {
    series: { market, dataset: spec.name, ...interval, symbol },
    settings: settingsOf(session, spec, dataset.interval),
    cadences: dataset.cadences,
    ranges: [{ from: range.from, to: range.to }],
  };
}

function describe(
  session: Session,
  datasets: readonly ChosenDataset[],
): Pick<Wanted, 'what' | 'dataPath' | 'query'> {
  const { options, paths, venue } = session;
  const names = [...new Set(datasets.map(({ spec }) => spec.name))];
  const intervals = [...new Set(datasets.flatMap((dataset) => dataset.interval ?? []))];
  const what = [options.market, names.join(','), intervals.join(',')].filter((part) => part !== '').join(' ');
  if (options.format === 'zip')
    return { what, dataPath: join(paths.root, 'data'), query: `cryptodl serve ${shownPath(paths.root)}` };
  const market = join(paths.root, venue.name, options.market);
  const dataPath = names.length === 1 ? join(market, names[0] ?? '') : market;
  return { what, dataPath, query: queryOf(options.format, shownPath(join(market, names[0] ?? ''))) };
}

function queryOf(format: Format, folder: string): string {
  const reader = format === 'csv' ? 'read_csv' : 'read_parquet';
  return `SELECT symbol, count(*) FROM ${reader}('${folder.replaceAll("'", "''")}/**/*.${format}', hive_partitioning = true) GROUP BY symbol   -- in DuckDB`;
}

/** Named symbols that one of the datasets has and another has not. */
function lackingNotes(
  { names }: SymbolPatterns,
  datasets: readonly ChosenDataset[],
  available: ChosenSymbols['available'],
): string[] {
  const lacking = datasets.flatMap(({ market, spec }) => {
    const has = available?.get(spec.name);
    return names.flatMap((name) => {
      if (has === undefined || has.has(name)) return [];
      const near = symbolLike(name, [...has]);
      return `lacking    ${market} ${spec.name} has no ${name}${near === undefined ? '' : `; did you mean ${near}?`}`;
    });
  });
  const all = [...new Set(lacking)];
  return all.length > MOST_NOTES
    ? [...all.slice(0, MOST_NOTES), `           … and ${all.length - MOST_NOTES} more`]
    : all;
}

const MOST_NOTES = 5;

function notesOf(selection: Selection, datasets: readonly ChosenDataset[], range: Range): string[] {
  const notes: string[] = [];
  const { excluded } = selection;
  if (excluded.length > 0) {
    const more = excluded.length > 3 ? ', …' : '';
    notes.push(
      `excluded   ${excluded.length} symbol${excluded.length === 1 ? '' : 's'}: ${excluded.slice(0, 3).join(', ')}${more}`,
    );
  }
  const monthly = datasets.filter((dataset) => !dataset.cadences.includes('daily'));
  const names = [
    ...new Set(
      monthly.map(({ spec, interval }) =>
        [spec.name, interval].filter((part) => part !== undefined).join(' '),
      ),
    ),
  ];
  if (names.length > 0) {
    const first = range.from === undefined ? 'the start' : dayText(range.from).slice(0, 7);
    notes.push(
      `monthly    ${names.join(', ')}: every month that the range touches (${first} … ${dayText(range.to - 1).slice(0, 7)})`,
    );
  }
  return notes;
}
