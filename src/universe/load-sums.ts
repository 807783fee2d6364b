/** Loads the daily sums of a universe from the files that its periods can need. */
import type { DuckDbSession } from '../convert/duckdb.js';
import { calendarStart, dayOf, dayText } from '../model/calendar.js';
import type { CalendarPeriod } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Measure } from '../options/periods.js';
import type { Catalogue } from '../catalogue/catalogue.js';
import { chosenFiles, filesOfDays } from './choose-files.js';
import type { FilesBySymbol, UniverseFile } from './choose-files.js';
import { DATASET } from './choose-symbols.js';
import type { UniverseMarket } from './choose-symbols.js';
import { loadDailySums } from './daily-sums.js';
import type { GivenDays } from './periods.js';

export interface NeededDays extends UniverseMarket, GivenDays {
  readonly by: Measure;
  readonly every: CalendarPeriod;
  /** In days. */
  readonly window: number;
  readonly minAge: number;
}

export interface SumsRequest extends NeededDays {
  readonly selected: ReadonlySet<string>;
  readonly catalogue: Catalogue;
}

export interface LoadedSums {
  /** Rows of this day and later ones were not read. */
  readonly before: number;
  /** Symbols with files of days that were not read, because they are after the last period began. */
  readonly goOn: ReadonlySet<string>;
}

/** The first day that the first given period needs. */
export function firstDay({ from = 0, every, window, minAge }: NeededDays): number {
  return calendarStart(from, every) - Math.max(window, minAge);
}

/**
 * Creates the tables of `loadDailySums`. Throws a usage error if no file of the days or of the selected symbols is left. Rejects with `disk` for a
 * file that does not have its committed content.
 */
export async function loadSums(
  session: DuckDbSession,
  found: FilesBySymbol,
  request: SumsRequest,
): Promise<LoadedSums> {
  const all = chosenFiles(found);
  const files = neededFiles(all, request);
  const before = endOf(all, request);
  await loadDailySums(session, { ...request, files, before });
  // The object of a month may have no rows after a day in the month: the symbol was delisted.
  const goesOn = ({ last }: UniverseFile): boolean =>
    last !== undefined && dayOf(Date.parse(last), request.spec) >= before;
  return { before, goOn: new Set(all.filter(goesOn).map(({ symbol }) => symbol)) };
}

/** The day that no period needs, and all later days. */
function endOf(files: readonly UniverseFile[], { to, every }: NeededDays): number {
  const end = lastDay(files);
  return to === undefined ? end : Math.min(end, calendarStart(to, every));
}

function lastDay(files: readonly UniverseFile[]): number {
  return files.reduce((last, { days }) => Math.max(last, days.to), -Infinity);
}

/** Only the files that the periods can need: the days of the lake are not known before its rows are read. */
function neededFiles(files: readonly UniverseFile[], request: SumsRequest): UniverseFile[] {
  const before = endOf(files, request);
  // The newest files tell the last day of the lake, also if it is before --from.
  const from = request.from === undefined ? -Infinity : Math.min(firstDay(request), lastDay(files) - 1);
  const needed = filesOfDays(files, { from, to: before });
  if (needed.some(({ symbol }) => request.selected.has(symbol))) return needed;
  throw usage(
    `the lake has no ${request.market} ${DATASET} of the selected symbols before ${dayText(before)}`,
    'download earlier days, or give a later --to',
  );
}
