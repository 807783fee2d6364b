/** Prints or writes the members of a universe in the form of `--as`: CSV, NDJSON, a list, Parquet, lists of pairs. */
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeData } from '../../terminal/write-data.js';
import type { DuckDbSession } from '../../convert/duckdb.js';
import { quoteName, quotePath, quoteText } from '../../convert/sql.js';
import { refuseForeignFile, writeOwnFile } from '../../files/own-file.js';
import type { OwnFile } from '../../files/own-file.js';
import { dayText } from '../../model/calendar.js';
import type { Io } from '../../model/io.js';
import { countText, listText } from '../../model/units.js';
import type { Options } from '../../plan/options/flags.js';
import type { Market } from '../../model/task.js';
import { printRows } from '../../run/print-table.js';
import { pairOf } from '../../exchange/pairs.js';
import { fieldsOf } from '../../text/json.js';
import type { ExchangeSpec } from '../../exchange/exchange-spec.js';
import { shownPath } from '../../text/printable.js';
import type { Ranking } from './members.js';

const MARK = 'cryptodl universe';

type Printed = Pick<Ranking, 'by' | 'market' | 'starts'>;

interface Output {
  readonly io: Io;
  readonly options: Options;
  readonly exchange: ExchangeSpec;
  /** Absolute; empty for the forms that are printed. */
  readonly target: string;
  readonly warn: (text: string) => void;
}

/** Resolves with further texts for the summary. */
export async function printUniverse(
  session: DuckDbSession,
  ranking: Printed,
  output: Output,
): Promise<string[]> {
  const { io, options } = output;
  if (options.as === 'parquet') return writeRows(session, ranking, output);
  if (options.as === 'freqtrade') return writePairlists(session, ranking, output);
  if (options.as === 'list') {
    const rows = await session.rows('SELECT DISTINCT symbol FROM member ORDER BY symbol');
    await writeData(io, options.json ? rows : rows.map(({ symbol }) => String(symbol)));
    return [];
  }
  // Sums of volumes are text with all digits, without zeros at the end.
  const by = quoteName(ranking.by);
  const value =
    ranking.by === 'count'
      ? 'CAST("count" AS DOUBLE)'
      : String.raw`regexp_replace(${by}::VARCHAR, '\.?0+$', '')`;
  const rows = await session.select(
    `SELECT * REPLACE (${value} AS ${by}, period::VARCHAR AS period, first_day::VARCHAR AS first_day) FROM member ORDER BY member.period, rank`,
  );
  if (rows !== undefined) await printRows(io, rows, options.json);
  return [];
}

async function writeRows(
  session: DuckDbSession,
  { by }: Printed,
  { io, options, target }: Output,
): Promise<string[]> {
  const own: OwnFile = {
    flag: 'target',
    path: target,
    what: 'a Parquet file of cryptodl universe',
    isOwn: (path) => isOwnParquet(session, path),
    force: options.force,
  };
  const value = `CAST(${quoteName(by)} AS ${by === 'count' ? 'BIGINT' : 'DOUBLE'}) AS ${quoteName(by)}`;
  await refuseForeignFile(own);
  await writeOwnFile(own, (staged) =>
    session.run(`COPY (SELECT * REPLACE (${value}) FROM member ORDER BY period, rank)
TO ${quoteText(staged)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false, KV_METADATA {made_by: ${quoteText(MARK)}})`),
  );
  if (options.json) await writeData(io, [{ file: shownPath(target) }]);
  return [`wrote ${shownPath(target)}`];
}

async function isOwnParquet(session: DuckDbSession, path: string): Promise<boolean> {
  const rows = await session
    .rows(
      `SELECT decode(value) AS made_by FROM parquet_kv_metadata(${quotePath(path)}) WHERE decode(key) = 'made_by'`,
    )
    .catch(() => []);
  return rows.some((row) => row['made_by'] === MARK);
}

async function writePairlists(
  session: DuckDbSession,
  { market, starts }: Printed,
  { io, options, target, exchange, warn }: Output,
): Promise<string[]> {
  const fileOf = (period: string): OwnFile => ({
    flag: 'target',
    path: join(target, `pairlist-${period}.json`),
    what: 'an unchanged list of cryptodl universe',
    isOwn: isOwnPairlist,
    force: options.force,
  });
  const periods = starts.map(dayText);
  for (const period of periods) await refuseForeignFile(fileOf(period));
  const unnamed = new Set<string>();
  for (const period of periods) {
    const members = await session.rows(
      `SELECT symbol FROM member WHERE period = DATE '${period}' ORDER BY rank`,
    );
    const pairs = members.flatMap(({ symbol }) => {
      const pair = pairName(exchange, market, String(symbol));
      if (pair === undefined) unnamed.add(String(symbol));
      return pair ?? [];
    });
    const own = fileOf(period);
    await writeOwnFile(own, (staged) => writeFile(staged, pairlistText(pairs)));
    if (options.json) await writeData(io, [{ period, file: shownPath(own.path), pairs: pairs.length }]);
  }
  if (unnamed.size > 0)
    warn(
      `${countText(unnamed.size, 'symbol')} left out of the pairs, because the quote asset is not known: ${listText([...unnamed].sort())}`,
    );
  return [`wrote ${countText(starts.length, 'file')} in ${shownPath(target)}`];
}

/** `BTC/USDT`, `BTC/USDT:USDT`, `BTC/USD:BTC`, `BTC/USDT:USDT-240329`. Undefined for a symbol whose assets are not known. */
function pairName(exchange: ExchangeSpec, market: Market, symbol: string): string | undefined {
  const pair = pairOf(exchange, market, symbol);
  if (pair === undefined) return undefined;
  const { base, quote, settle, expiry } = pair;
  return `${base}/${quote}${settle === undefined ? '' : `:${settle}`}${expiry === undefined ? '' : `-${expiry}`}`;
}

/**
 * A fragment of a configuration of freqtrade: its StaticPairList reads the pairs of `exchange.pair_whitelist`. The mark and the digest tell later runs that the file may be replaced. freqtrade
 * ignores both.
 */
function pairlistText(pairs: readonly string[]): string {
  const digest = createHash('sha256').update(JSON.stringify(pairs)).digest('hex');
  const content = {
    made_by: MARK,
    digest,
    exchange: { pair_whitelist: pairs },
    pairlists: [{ method: 'StaticPairList' }],
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}

/** Whether a file has the text of `pairlistText` without any change. */
async function isOwnPairlist(path: string): Promise<boolean> {
  try {
    const text = await readFile(path, 'utf8');
    const { pair_whitelist: pairs } = fieldsOf(fieldsOf(JSON.parse(text))['exchange']);
    return Array.isArray(pairs) && text === pairlistText(pairs.map(String));
  } catch {
    return false;
  }
}
