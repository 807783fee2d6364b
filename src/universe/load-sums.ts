/** Loads the daily sums of a universe from the files that its periods can need and that can be read. */
import type { DuckDbSession } from '../convert/duckdb.js';
import { bringIn } from '../lake/backing.js';
import { calendarStart, dayOf, dayText } from '../model/calendar.js';
import type { CalendarPeriod } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import type { Measure } from '../options/periods.js';
import { FileDigests, fetchAgainText } from '../query/file-digests.js';
import { chosenFiles, filesOfDays, leaveOut } from './choose-files.js';
import type { FoundFiles, UniverseFile } from './choose-files.js';
import { DATASET } from './choose-symbols.js';
import type { UniverseMarket } from './choose-symbols.js';
import { loadDailySums, UnreadableFiles } from './daily-sums.js';
import type { RowFaults } from './daily-sums.js';
import type { GivenDays } from './periods.js';
import { refuseUnreadable } from './warnings.js';

export interface NeededDays extends UniverseMarket, GivenDays {
  readonly by: Measure;
  readonly every: CalendarPeriod;
  /** In days. */
  readonly window: number;
  readonly minAge: number;
}

export interface SumsRequest extends NeededDays {
  readonly selected: ReadonlySet<string>;
  /** Absolute. */
  readonly root: string;
  readonly out: string;
  readonly signal: AbortSignal;
}

export interface LoadedSums {
  readonly faults: RowFaults;
  /** Rows of this day and later ones were not read. */
  readonly before: number;
  /** Symbols with files of days that were not read, because they are after the last period began. */
  readonly goOn: ReadonlySet<string>;
}

/** The first day that the first given period needs. */
export function firstDay({ from = 0, every, window, minAge }: NeededDays): number {
  return calendarStart(from, every) - Math.max(window, minAge);
}

/** Creates the tables of `loadDailySums`. Throws usage errors if no file of the days or of the selected symbols is left. */
export async function loadSums(
  session: DuckDbSession,
  found: FoundFiles,
  request: SumsRequest,
): Promise<LoadedSums> {
  const digests = new FileDigests(request.signal);
  for (;;) {
    const all = chosenFiles(found);
    const files = neededFiles(all, found, request);
    // The bytes of a lake in a bucket.
    await bringIn(files.map(({ path }) => path));
    const damaged = await digests.faultsOf(files);
    if (damaged.length > 0) {
      leaveOut(found, damaged);
      continue;
    }
    const before = endOf(all, request);
    try {
      const faults = await loadDailySums(session, { ...request, files, before });
      // The object of a month may have no rows after a day in the month: the symbol was delisted.
      const goesOn = ({ last }: UniverseFile): boolean =>
        last !== undefined && dayOf(Date.parse(last), request.spec) >= before;
      return { faults, before, goOn: new Set(all.filter(goesOn).map(({ symbol }) => symbol)) };
    } catch (error) {
      if (!(error instanceof UnreadableFiles)) throw error;
      leaveOut(found, error.faults);
    }
  }
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
function neededFiles(
  files: readonly UniverseFile[],
  found: FoundFiles,
  request: SumsRequest,
): UniverseFile[] {
  const { market, selected, root } = request;
  refuseUnreadable(found, request);
  const before = endOf(files, request);
  // The newest files tell the last day of the lake, also if it is before --from.
  const from = request.from === undefined ? -Infinity : Math.min(firstDay(request), lastDay(files) - 1);
  const needed = filesOfDays(files, { from, to: before });
  if (needed.some(({ symbol }) => selected.has(symbol))) return needed;
  const isUnread = found.unread.some(({ symbol }) => selected.has(symbol));
  throw usage(
    `the lake has no ${isUnread ? 'readable ' : ''}${market} ${DATASET} of the selected symbols before ${dayText(before)}`,
    isUnread
      ? fetchAgainText(root, 'the objects of damaged files')
      : 'download earlier days, or give a later --to',
  );
}
