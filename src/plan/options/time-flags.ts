/** Flags of the group When: days of a selection, and times of a run. */
import { date, instant, timeOfDay, until } from './dates.js';
import { duration, section } from './flag-spec.js';
import { integer } from './numbers.js';

export const TIME_FLAGS = section({ group: 'When' })({
  at: {
    value: 'HH:MM',
    doc: 'time of day, UTC; the archive publishes the objects of a day from about 07:30 of the next day',
    parse: timeOfDay,
    unit: 'Minutes',
    default: '08:05',
  },
  days: {
    short: 'd',
    value: 'N',
    doc: 'the last N complete UTC days; a download with --symbols and without a range selects the last day',
    parse: integer(1, 'day'),
    aka: ['last'],
  },
  months: {
    value: 'N',
    doc: 'the last N complete months',
    parse: integer(1, 'month'),
  },
  from: {
    value: 'DATE',
    doc: 'first day, for example 2024-01-31, 2024-01 or yesterday; a month (2024-01) or a year (2024) begins with its first day; --to without --from begins at the first day of each series',
    parse: date,
    aka: ['since', 'start', 'start-date', 'startdate', 'begin', 'from-date', 'date-from', 'start-time'],
  },
  to: {
    value: 'DATE',
    doc: 'last day, inclusive; a month (2024-01) or a year (2024) ends with its last day; yesterday and today are the last complete day; --from without --to ends yesterday',
    parse: date,
    aka: ['until', 'end', 'end-date', 'enddate', 'to-date', 'date-to', 'end-time'],
  },
  'include-today': 'also request the rows of today so far; the next run requests today again',
  'wait-for-publication': {
    value: 'UNTIL',
    doc: 'wait until the archive has published the newest period; this applies to each selected series that has not ended; the run waits at most until a time of day (08:30, UTC) or an instant (2026-11-21T08:30:00Z), or for a duration (90m)',
    parse: until,
  },
  jitter: duration('wait for a random time before the run starts; TIME is the maximum'),
  'max-duration': duration(
    'start no new download after this time; downloads in progress are finished and committed, the others are listed in the failure report; a run that is still planning ends without a report (exit code 3)',
  ),
  exact:
    'fetch only the selected days; without this flag, a run without --to also fetches what its order lacks since the earliest day that was ever asked for',
  all: {
    group: 'How',
    doc: 'show each gap; without this flag, the ten worst',
  },
  summary: {
    group: 'How',
    doc: 'print in one line whether anything is missing; with --json only the summary',
  },
  now: {
    value: 'ISO',
    doc: 'use this instant as the current time; for replays and tests',
    parse: instant,
    unit: 'Ms',
  },
});
