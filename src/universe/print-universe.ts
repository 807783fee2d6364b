/** Prints or writes the members of a universe in the form of `--as`. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeData, writeExact } from '../cli/write-data.js';
import type { DuckDbSession } from '../convert/duckdb.js';
import { refuseForeignFile, writeOwnFile } from '../files/own-file.js';
import type { OwnFile } from '../files/own-file.js';
import { dayText } from '../model/calendar.js';
import type { Io } from '../model/io.js';
import type { Market } from '../model/task.js';
import { countText, listText } from '../model/units.js';
import type { Options } from '../options/flags.js';
import type { Measure } from '../options/periods.js';
import type { Venue } from '../source/venue.js';
import { csvLine } from '../text/csv.js';
import { shownPath } from '../text/printable.js';
import { isOwnParquet, memberFields, membersOf, symbolsOf, writeParquet } from './member-rows.js';
import { isOwnPairlist, pairlistText, pairName } from './pairlist.js';

export interface Printing {
  readonly io: Io;
  readonly options: Options;
  readonly venue: Venue;
  readonly market: Market;
  readonly by: Measure;
  readonly starts: readonly number[];
  /** Absolute; undefined for the forms that are printed. */
  readonly target: string | undefined;
  readonly warn: (text: string) => void;
}

/** Resolves with further texts for the summary, or with undefined if the reader of stdout has stopped. */
export async function printUniverse(
  session: DuckDbSession,
  printing: Printing,
): Promise<string[] | undefined> {
  const { options, target = '' } = printing;
  if (options.as === 'csv') return printRows(session, printing);
  if (options.as === 'list') return printSymbols(session, printing);
  if (options.as === 'parquet') return writeRows(session, { ...printing, target });
  return writePairlists(session, { ...printing, target });
}

async function printRows(
  session: DuckDbSession,
  { io, options, by }: Printing,
): Promise<string[] | undefined> {
  const head = csvLine(['period', 'symbol', 'rank', by, 'days', 'first_day']);
  if (!options.json && !(await writeExact(io, head))) return undefined;
  for await (const members of membersOf(session)) {
    const rows = members.map((member) => memberFields(member, by));
    const isRead = options.json
      ? await writeData(io, rows)
      : await writeExact(io, rows.map((row) => csvLine(Object.values(row))).join(''));
    if (!isRead) return undefined;
  }
  return [];
}

async function printSymbols(
  session: DuckDbSession,
  { io, options }: Printing,
): Promise<string[] | undefined> {
  const symbols = await symbolsOf(session);
  const isRead = await writeData(io, options.json ? symbols.map((symbol) => ({ symbol })) : symbols);
  return isRead ? [] : undefined;
}

type WithTarget = Printing & { readonly target: string };

async function writeRows(
  session: DuckDbSession,
  { io, options, by, target }: WithTarget,
): Promise<string[] | undefined> {
  const own: OwnFile = {
    flag: 'target',
    path: target,
    what: 'a Parquet file of cryptodl universe',
    isOwn: (path) => isOwnParquet(session, path),
    force: options.force,
  };
  await refuseForeignFile(own);
  await writeOwnFile(own, (staged) => writeParquet(session, staged, by));
  if (options.json && !(await writeData(io, [{ file: shownPath(target) }]))) return undefined;
  return [`wrote ${shownPath(target)}`];
}

async function writePairlists(session: DuckDbSession, printing: WithTarget): Promise<string[] | undefined> {
  const { io, options, starts, target } = printing;
  const fileOf = (start: number): OwnFile => ({
    flag: 'target',
    path: join(target, `pairlist-${dayText(start)}.json`),
    what: 'an unchanged list of cryptodl universe',
    isOwn: isOwnPairlist,
    force: options.force,
  });
  for (const start of starts) await refuseForeignFile(fileOf(start));
  const pairs = await pairsByPeriod(session, printing);
  for (const start of starts) {
    const names = pairs.get(start) ?? [];
    const own = fileOf(start);
    await writeOwnFile(own, (staged) => writeFile(staged, pairlistText(names)));
    const fields = { period: dayText(start), file: shownPath(own.path), pairs: names.length };
    if (options.json && !(await writeData(io, [fields]))) return undefined;
  }
  return [`wrote ${countText(starts.length, 'file')} in ${shownPath(target)}`];
}

async function pairsByPeriod(
  session: DuckDbSession,
  { venue, market, warn }: Printing,
): Promise<ReadonlyMap<number, string[]>> {
  const pairs = new Map<number, string[]>();
  const unnamed = new Set<string>();
  for await (const members of membersOf(session))
    for (const { period, symbol } of members) {
      const name = pairName(venue, market, symbol);
      if (name === undefined) unnamed.add(symbol);
      else if (pairs.get(period)?.push(name) === undefined) pairs.set(period, [name]);
    }
  if (unnamed.size > 0)
    warn(
      `${countText(unnamed.size, 'symbol')} left out of the pairs, because the quote asset is not known: ${listText([...unnamed].sort())}`,
    );
  return pairs;
}
