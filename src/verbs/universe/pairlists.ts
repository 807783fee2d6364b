/** The lists of pairs of `universe --as freqtrade`, a file for each period. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeData } from '../../terminal/write-data.js';
import type { DuckDb } from '../../convert/duckdb.js';
import { pairName, pairOf } from '../../exchange/pairs.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import { dayText } from '../../model/calendar.js';
import type { Io } from '../../model/io.js';
import { countText, listText } from '../../model/units.js';
import { fieldsOf, parseJson } from '../../text/json.js';
import { shownPath } from '../../text/printable.js';
import type { Ranking } from './ranking-terms.js';

const MARK = 'cryptodl universe';

export async function writePairlists(
  duckdb: DuckDb,
  io: Io,
  { market, starts, options, target, exchange, warn }: Ranking,
): Promise<string[]> {
  const lists = starts.map(dayText).map((period) => {
    const path = join(target, `pairlist-${period}.json`);
    const what = 'an unchanged list of cryptodl universe';
    return { period, own: { flag: 'target', path, what, isOwn: isOwnPairlist, force: options.force } };
  });
  for (const { own } of lists) await refuseForeignFile(own);
  const unnamed = new Set<string>();
  for (const { period, own } of lists) {
    const members = await duckdb.rows(
      `SELECT symbol FROM member WHERE period = DATE '${period}' ORDER BY rank`,
    );
    const pairs = members.flatMap(({ symbol }) => {
      const pair = pairOf(exchange, market, String(symbol));
      if (pair === undefined) unnamed.add(String(symbol));
      return pair === undefined ? [] : [pairName(pair)];
    });
    await writeOwnFile(own, (staged) => writeFile(staged, pairlistText(pairs)));
    if (options.json) await writeData(io, [{ period, file: shownPath(own.path), pairs: pairs.length }]);
  }
  if (unnamed.size > 0)
    warn(
      `${countText(unnamed.size, 'symbol')} left out of the pairs, because the quote asset is not known: ${listText([...unnamed].sort())}`,
    );
  return [`wrote ${countText(starts.length, 'file')} in ${shownPath(target)}`];
}

/**
 * A fragment of a configuration of freqtrade: its StaticPairList reads the pairs of `exchange.pair_whitelist`. The mark and the digest tell later runs that the file may be replaced. freqtrade
 * ignores both.
 */
function pairlistText(pairs: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(pairs)).digest('hex');
  const exchange = { pair_whitelist: pairs };
  const content = { made_by: MARK, digest, exchange, pairlists: [{ method: 'StaticPairList' }] };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

async function isOwnPairlist(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => '');
  const { pair_whitelist: pairs } = fieldsOf(fieldsOf(parseJson(text))['exchange']);
  return Array.isArray(pairs) && text === pairlistText(pairs.map(String));
}
