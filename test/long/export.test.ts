/** `cryptodl export`: each layout, its values, repeated exports, and the files that it does not replace. */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { acquireLock } from '../../src/lake/lock.js';
import { systemClock } from '../../src/model/clock.js';
import { startArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlProcess } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { exportsOf, filesOf, linesOf } from '../helpers/exports.js';
import { flipByte } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { whileLosingLock, whileStaged } from '../helpers/lost-lock.js';
import { firstMember } from '../helpers/samples.js';
import { useScene } from '../helpers/scene.js';
import { useSql } from '../helpers/sql.js';

const MONTH = { cadence: 'monthly', from: '2024-01-01', to: '2024-02-29' } as const;
const DAYS = { cadence: 'daily', from: '2024-01-01', to: '2024-01-03' } as const;
const scene = useScene({
  now: '2024-03-10T12:00:00Z',
  archive: [
    {
      ...MONTH,
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT', 'ETHUSDT', 'CVCUSDTSETTLED', 'BTCUSDT_240329'],
    },
    { ...MONTH, market: 'um', dataset: 'klines', interval: '1mo', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'spot', dataset: 'klines', interval: '1h', symbols: ['BTCUSDT', 'ADAEUR'] },
    { ...MONTH, market: 'cm', dataset: 'klines', interval: '1d', symbols: ['BTCUSD_PERP'] },
    { ...MONTH, market: 'um', dataset: 'markPriceKlines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'um', dataset: 'indexPriceKlines', interval: '1h', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'um', dataset: 'fundingRate', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'aggTrades', symbols: ['BTCUSDT', 'ETHUSDT'] },
    { ...DAYS, market: 'um', dataset: 'metrics', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'bookTicker', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'spot', dataset: 'trades', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'spot', dataset: 'aggTrades', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'um', dataset: 'klines', interval: '1m', symbols: ['BTCUSDT'] },
    { ...MONTH, market: 'um', dataset: 'markPriceKlines', interval: '8h', symbols: ['BTCUSDT'] },
    { ...DAYS, market: 'cm', dataset: 'aggTrades', symbols: ['BTCUSD_PERP'] },
  ],
});
const { exported, newExport, newTarget } = exportsOf(scene);
const sql = useSql();
const RANGE = '--from 2024-01 --to 2024-02';

const downloaded = new Map<string, string>();

/** A new lake with these downloads: a copy, if an earlier test had the same. */
async function lakeOf(...downloads: readonly string[]): Promise<string> {
  const name = downloads.join();
  const known = downloaded.get(name) ?? (await scene.lakeOf(downloads));
  downloaded.set(name, known);
  const lake = join(scene.newFolder(), 'lake');
  cpSync(known, lake, { recursive: true, preserveTimestamps: true });
  return lake;
}

/** The rows of a file of candles, with their times in microseconds. */
function candlesOf(file: string): string {
  return `SELECT epoch_us(date) AS date, * EXCLUDE (date) FROM '${file}'`;
}

const KLINES = '--interval 1h --symbols BTCUSDT,ETHUSDT';

describe('export freqtrade', () => {
  it('writes the names of pairs, candle types and intervals that freqtrade looks for', async () => {
    const lake = await lakeOf(
      `-m um ${KLINES},BTCUSDT_240329 ${RANGE}`,
      `-m um -i 1mo -s BTCUSDT ${RANGE}`,
      `-m spot -i 1h -s BTCUSDT,ADAEUR ${RANGE}`,
      `-m cm -i 1d -s BTCUSD_PERP ${RANGE}`,
      `-m um --dataset markPriceKlines,indexPriceKlines -i 1h -s BTCUSDT ${RANGE}`,
      `-m um --dataset fundingRate -s BTCUSDT ${RANGE}`,
      `-m um --dataset aggTrades,metrics -s BTCUSDT --from 2024-01-01 --to 2024-01-03`,
    );
    const { target, ...result } = await newExport('freqtrade', lake);
    expect([result.code, result.stdout]).toEqual([0, '']);
    expect(filesOf(target)).toEqual([
      'ADA_EUR-1h.parquet',
      'BTC_USDT-1h.parquet',
      'futures/BTC_USDT_USDT-1Mo-futures.parquet',
      'futures/BTC_USDT_USDT-1h-funding_rate.parquet',
      'futures/BTC_USDT_USDT-1h-futures.parquet',
      'futures/BTC_USDT_USDT-1h-index.parquet',
      'futures/BTC_USDT_USDT-1h-mark.parquet',
      'futures/BTC_USDT_USDT-240329-1h-futures.parquet',
      'futures/BTC_USDT_USDT-8h-funding_rate.parquet',
      'futures/BTC_USDT_USDT-8h-mark.parquet',
      'futures/BTC_USD_BTC-1d-futures.parquet',
      'futures/ETH_USDT_USDT-1h-futures.parquet',
    ]);
    expect(result.stderr).toContain('12 files written');
    expect(result.stderr).toContain('--data-format-ohlcv parquet');

    // Nanoseconds in UTC, five doubles, in this order; the rows are those of the lake.
    const file = join(target, 'futures/BTC_USDT_USDT-1h-futures.parquet');
    const columns = await sql(
      `SELECT name AS n, coalesce(logical_type, type) AS t FROM parquet_schema('${file}') WHERE num_children IS NULL`,
    );
    expect(columns.map(({ n, t }) => `${String(n)} ${String(t)}`)).toEqual([
      'date TimestampType(isAdjustedToUTC=1, unit=TimeUnit(MILLIS=<null>, MICROS=<null>, NANOS=NanoSeconds()))',
      ...['open', 'high', 'low', 'close', 'volume'].map((name) => `${name} DOUBLE`),
    ]);
    const rows = `SELECT epoch_us(open_time) AS date, open, high, low, close, volume FROM '${lake}/binance/um/klines/interval=1h/symbol=BTCUSDT/*.parquet' ORDER BY open_time`;
    expect(await sql(candlesOf(file))).toEqual(await sql(rows));

    // Contracts of 100 USD are no volume in BTC.
    const [inverse] = await sql(
      `SELECT (SELECT sum(volume) FROM '${target}/futures/BTC_USD_BTC-1d-futures.parquet') = sum(quote_volume) AS same FROM '${lake}/binance/cm/klines/interval=1d/symbol=BTCUSD_PERP/*.parquet'`,
    );
    expect(inverse).toEqual({ same: true });

    // Settlements are some milliseconds late; freqtrade joins them with candles by equal times.
    const funding = join(target, 'futures/BTC_USDT_USDT-8h-funding_rate.parquet');
    const settled = `FROM '${lake}/binance/um/fundingRate/symbol=BTCUSDT/*.parquet'`;
    expect(await sql(`SELECT count_if(epoch_us(calc_time) % 1000000 <> 0) > 0 AS late ${settled}`)).toEqual([
      { late: true },
    ]);
    expect(await sql(candlesOf(funding))).toEqual(
      await sql(
        `SELECT epoch_us(calc_time) // 1000000 * 1000000 AS date, last_funding_rate AS open, 0::DOUBLE AS high, 0::DOUBLE AS low, 0::DOUBLE AS close, 0::DOUBLE AS volume ${settled} ORDER BY calc_time`,
      ),
    );
  });

  it('makes mark candles of 8h from those of 1h, and leaves out a first and a last one that are not complete', async () => {
    const lake = await lakeOf(
      '-m um --dataset markPriceKlines -i 1h -s BTCUSDT --from 2024-01-01 --to 2024-01-31',
    );
    const { target } = await newExport('freqtrade', lake, '--from', '2024-01-02', '--to', '2024-01-03');
    const made = await sql(candlesOf(`${target}/futures/BTC_USDT_USDT-8h-mark.parquet`));
    const hours = await sql(
      `SELECT epoch_us(open_time) AS date, open, high, low, close, volume FROM '${lake}/binance/um/markPriceKlines/interval=1h/symbol=BTCUSDT/*.parquet' WHERE open_time >= '2024-01-02' AND open_time < '2024-01-04' ORDER BY open_time`,
    );
    const expected = [0, 1, 2, 3, 4, 5].map((at) => {
      const own = hours.slice(at * 8, at * 8 + 8);
      const numbers = (name: string): number[] => own.map((row) => Number(row[name]));
      return {
        date: own[0]?.['date'],
        open: own[0]?.['open'],
        high: Math.max(...numbers('high')),
        low: Math.min(...numbers('low')),
        close: own[7]?.['close'],
        volume: numbers('volume').reduce((sum, volume) => sum + volume, 0),
      };
    });
    expect(made).toEqual(expected);
    const { target: other } = await newExport(
      'freqtrade',
      lake,
      ...'--mark-interval 1h,20h --from 2024-01-02 --to 2024-01-03'.split(' '),
    );
    // 2024-01-02 00:00 is no start of 20 hours since 1970, and the last 20 hours are not complete.
    const starts = await sql(
      `SELECT date::VARCHAR AS date FROM '${other}/futures/BTC_USDT_USDT-20h-mark.parquet'`,
    );
    expect(starts).toHaveLength(2);
    expect(existsSync(join(other, 'futures/BTC_USDT_USDT-8h-mark.parquet'))).toBe(false);
    const [last] = await sql(
      `SELECT max(epoch_us(date)) + 20 * 3600000000 <= epoch_us(TIMESTAMP '2024-01-04') AS complete FROM '${other}/futures/BTC_USDT_USDT-20h-mark.parquet'`,
    );
    expect(last).toEqual({ complete: true });
    const [first] = await sql(
      `SELECT min(epoch_us(date)) >= epoch_us(TIMESTAMP '2024-01-02') AS complete FROM '${other}/futures/BTC_USDT_USDT-20h-mark.parquet'`,
    );
    expect(first).toEqual({ complete: true });
  });

  it('writes trades only when they are named, aggTrades before trades, with the side of the taker', async () => {
    const lake = await lakeOf(
      '-m spot --dataset aggTrades,trades -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
    );
    const { target, ...refused } = await newExport('freqtrade', lake);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('for trades, name them: --dataset aggTrades');
    expect((await exported('freqtrade', lake, target, '--dataset', 'all')).code).toBe(2);
    expect((await exported('freqtrade', lake, target, '--dataset', 'aggTrades,trades')).code).toBe(0);
    expect(filesOf(target)).toEqual(['BTC_USDT-trades.parquet']);
    const file = `'${target}/BTC_USDT-trades.parquet'`;
    const columns = await sql(`SELECT column_name AS n, column_type AS t FROM (DESCRIBE FROM ${file})`);
    expect(columns.map(({ n, t }) => `${String(n)} ${String(t)}`)).toEqual([
      'timestamp BIGINT',
      'id VARCHAR',
      'type VARCHAR',
      'side VARCHAR',
      'price DOUBLE',
      'amount DOUBLE',
      'cost DOUBLE',
    ]);
    expect(await sql(`FROM ${file}`)).toEqual(
      await sql(
        `SELECT epoch_ms(transact_time) AS timestamp, agg_trade_id::VARCHAR AS id, NULL AS type, if(is_buyer_maker, 'sell', 'buy') AS side, price, quantity AS amount, price * quantity AS cost FROM '${lake}/binance/spot/aggTrades/symbol=BTCUSDT/*.parquet' ORDER BY agg_trade_id`,
      ),
    );
  });

  it('leaves out a settled contract with a line, and takes assets of --exchange-info', async () => {
    const lake = await lakeOf(`-m um -i 1h -s CVCUSDTSETTLED,BTCUSDT ${RANGE}`);
    const { target, ...result } = await newExport('freqtrade', lake);
    expect(result.code).toBe(0);
    expect(result.stderr).toContain(
      'left out: um klines 1h CVCUSDTSETTLED: a settled contract has no pair\n',
    );
    expect(result.stderr).toContain('1 left out');
    expect((await exported('freqtrade', lake, newTarget(), '--require-complete')).code).toBe(4);
    expect(filesOf(target)).toEqual(['futures/BTC_USDT_USDT-1h-futures.parquet']);
    const info = join(scene.newFolder(), 'info.json');
    writeFileSync(
      info,
      JSON.stringify({ symbols: [{ symbol: 'BTCUSDT', baseAsset: 'BTCU', quoteAsset: 'SDT' }] }),
    );
    const { target: named } = await newExport('freqtrade', lake, '--exchange-info', info, '-s', 'BTCUSDT');
    expect(filesOf(named)).toEqual(['futures/BTCU_SDT_SDT-1h-futures.parquet']);
    writeFileSync(info, '{"symbols": []}');
    const wrong = await exported('freqtrade', lake, named, '--exchange-info', info);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('is not an answer of exchangeInfo') as string,
    ]);
  });

  it('writes one of two series with the same pair, and tells the other', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const info = join(scene.newFolder(), 'info.json');
    const assets = { baseAsset: 'BTC', quoteAsset: 'USDT' };
    writeFileSync(info, JSON.stringify({ symbols: [{ symbol: 'ETHUSDT', ...assets }] }));
    const { target, stderr } = await newExport('freqtrade', lake, '--exchange-info', info);
    const file = 'futures/BTC_USDT_USDT-1h-futures.parquet';
    expect(stderr).toContain(`left out: um klines 1h ETHUSDT: files of another series have the same names`);
    expect(filesOf(target)).toEqual([file]);
    expect(stderr).toContain('1 file written');
  });

  it('sorts rows and leaves out repeated times of a lake that keeps them as published', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE} --as-published`);
    const file = join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT/2024-01.parquet');
    const target = newTarget();
    // The file of the lake is replaced by one with the same rows in another order and with repeated ones.
    const shuffled = `${file}.new`;
    await sql(
      `COPY (SELECT * FROM (FROM '${file}' UNION ALL (FROM '${file}' LIMIT 5)) ORDER BY hash(open_time, close)) TO '${shuffled}' (FORMAT parquet)`,
    );
    const rows = await sql(
      `SELECT count(*) AS n, count(DISTINCT open_time) AS d FROM read_parquet('${shuffled}')`,
    );
    expect(rows).toEqual([{ n: '749', d: '744' }]);
    commitInPlace(lake, 'um/klines/interval=1h/symbol=BTCUSDT', '2024-01.parquet', shuffled);
    expect((await exported('freqtrade', lake, target)).code).toBe(0);
    const out = `'${target}/futures/BTC_USDT_USDT-1h-futures.parquet'`;
    expect(
      await sql(
        `SELECT count(*) AS n, count(DISTINCT date) AS d, count_if(date <= before) AS wrong FROM (SELECT date, lag(date) OVER () AS before FROM ${out})`,
      ),
    ).toEqual([{ n: '1440', d: '1440', wrong: '0' }]);
  });
});

/** Replaces a file of a lake, and its size and digest in the manifest. */
function commitInPlace(lake: string, series: string, name: string, from: string): void {
  const path = join(lake, 'binance', series, name);
  renameSync(from, path);
  const manifest = join(lake, '_manifests/binance', `${series}.jsonl`);
  const lines = readFileSync(manifest, 'utf8').trimEnd().split('\n');
  const changed = lines.map((text) => {
    const line = JSON.parse(text) as Record<string, unknown>;
    const facts = {
      fileBytes: statSync(path).size,
      fileSha256: createHash('sha256').update(readFileSync(path)).digest('hex'),
    };
    return JSON.stringify(line['file'] === name ? { ...line, ...facts } : line);
  });
  writeFileSync(manifest, `${changed.join('\n')}\n`);
}

describe('export tardis', () => {
  it('writes a file per type and day, with exact headers and digits', async () => {
    const lake = await lakeOf(
      '-m um --dataset aggTrades,metrics,bookTicker -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
      `-m um --dataset fundingRate -s BTCUSDT --from 2024-01-01 --to 2024-01-31`,
      `-m um --dataset markPriceKlines,indexPriceKlines -i 1h -s BTCUSDT --from 2024-01-01 --to 2024-01-31`,
    );
    const { target, ...result } = await newExport(
      'tardis',
      lake,
      '--from',
      '2024-01-01',
      '--to',
      '2024-01-03',
    );
    expect([result.code, result.stdout]).toEqual([0, '']);
    expect(result.stderr).toContain('local_timestamp is the same as timestamp');
    const dates = ['01', '02', '03'].map((day) => `2024/01/${day}/BTCUSDT.csv.gz`);
    expect(filesOf(target)).toEqual(
      ['derivative_ticker', 'quotes', 'trades'].flatMap((type) =>
        dates.map((date) => `binance-futures/${type}/${date}`),
      ),
    );
    const [header, ...trades] = linesOf(target, 'binance-futures/trades/2024/01/02/BTCUSDT.csv.gz');
    expect(header).toBe('exchange,symbol,timestamp,local_timestamp,id,side,price,amount');
    const own = await sql(
      `SELECT agg_trade_id AS id, epoch_us(transact_time) AS us, if(is_buyer_maker, 'sell', 'buy') AS side, price, quantity FROM '${lake}/binance/um/aggTrades/symbol=BTCUSDT/2024-01-02.parquet' ORDER BY agg_trade_id`,
    );
    expect(trades).toEqual(
      own.map(({ id, us, side, price, quantity }) =>
        ['binance-futures', 'BTCUSDT', us, us, id, side, plain(price), plain(quantity)].join(','),
      ),
    );
    const [ofQuotes, ...quotes] = linesOf(target, 'binance-futures/quotes/2024/01/02/BTCUSDT.csv.gz');
    expect(ofQuotes).toBe(
      'exchange,symbol,timestamp,local_timestamp,ask_amount,ask_price,bid_price,bid_amount',
    );
    const book = await sql(
      `SELECT epoch_us(transaction_time) AS us, best_ask_qty AS a, best_ask_price AS b, best_bid_price AS c, best_bid_qty AS d FROM '${lake}/binance/um/bookTicker/symbol=BTCUSDT/2024-01-02.parquet' ORDER BY transaction_time, update_id`,
    );
    expect(quotes).toEqual(
      book.map(({ us, a, b, c, d }) =>
        ['binance-futures', 'BTCUSDT', us, us, plain(a), plain(b), plain(c), plain(d)].join(','),
      ),
    );
  });

  it('has a row of derivative_ticker for each published value, and none of another day', async () => {
    const lake = await lakeOf(
      '-m um --dataset metrics -s BTCUSDT --from 2024-01-01 --to 2024-01-03',
      `-m um --dataset fundingRate -s BTCUSDT --from 2024-01-01 --to 2024-01-31`,
      `-m um --dataset markPriceKlines -i 8h -s BTCUSDT --from 2024-01-01 --to 2024-01-31`,
      `-m um --dataset markPriceKlines,indexPriceKlines -i 1h -s BTCUSDT --from 2024-01-01 --to 2024-01-31`,
    );
    const { target } = await newExport('tardis', lake, '--from', '2024-01-01', '--to', '2024-01-02');
    const [header = '', ...lines] = linesOf(
      target,
      'binance-futures/derivative_ticker/2024/01/02/BTCUSDT.csv.gz',
    );
    expect(header).toBe(
      'exchange,symbol,timestamp,local_timestamp,funding_timestamp,funding_rate,predicted_funding_rate,open_interest,last_price,index_price,mark_price',
    );
    const names = header.split(',');
    const rows = lines.map((line) =>
      Object.fromEntries(line.split(',').map((cell, at) => [names[at], cell])),
    );
    const start = Date.UTC(2024, 0, 2) * 1000;
    const times = rows.map(({ timestamp }) => Number(timestamp));
    expect(times.every((time) => time >= start && time < start + 86_400e6)).toBe(true);
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b));
    const count = (name: string): number => rows.filter((row) => row[name] !== '').length;
    // Some settlements are a few milliseconds late, and have a row of their own.
    const settled = await sql(
      `SELECT epoch_us(calc_time) AS us, last_funding_rate AS rate FROM '${lake}/binance/um/fundingRate/symbol=BTCUSDT/*.parquet' WHERE calc_time::DATE = DATE '2024-01-02' ORDER BY 1`,
    );
    const late = settled.filter(({ us }) => Number(us) % 300e6 !== 0).length;
    expect([rows.length, count('open_interest'), count('mark_price'), count('index_price')]).toEqual([
      288 + late,
      288,
      24,
      24,
    ]);
    expect(
      rows
        .filter((row) => row['funding_rate'] !== '')
        .map((row) => [row['timestamp'], row['funding_timestamp'], row['funding_rate']]),
    ).toEqual(settled.map(({ us, rate }) => [us, us, plain(rate)]));
    const [first] = rows;
    const [mark] = await sql(
      `SELECT close FROM '${lake}/binance/um/markPriceKlines/interval=1h/symbol=BTCUSDT/*.parquet' WHERE open_time = TIMESTAMP '2024-01-01 23:00:00'`,
    );
    expect([first?.['timestamp'], first?.['mark_price']]).toEqual([String(start), plain(mark?.['close'])]);
    expect([count('predicted_funding_rate'), count('last_price')]).toEqual([0, 0]);
    // The last candle of January ends with the first moment of February.
    const { target: whole } = await newExport('tardis', lake);
    const [, ...next] = linesOf(whole, 'binance-futures/derivative_ticker/2024/02/01/BTCUSDT.csv.gz');
    expect(next.map((line) => line.split(',')[2])).toEqual([String(Date.UTC(2024, 1, 1) * 1000)]);
    expect(filesOf(whole)).toHaveLength(32);
  });

  it('takes trades before aggTrades, and keeps each digit of a lake with --numbers string', async () => {
    const lake = await lakeOf(
      '-m spot --dataset aggTrades,trades -s BTCUSDT --from 2024-01-01 --to 2024-01-03 --numbers string',
    );
    const { target } = await newExport('tardis', lake);
    const [, ...lines] = linesOf(target, 'binance/trades/2024/01/03/BTCUSDT.csv.gz');
    const own = await sql(
      `SELECT concat_ws(',', 'binance', 'BTCUSDT', epoch_us(time), epoch_us(time), id, if(is_buyer_maker, 'sell', 'buy'), price, qty) AS line FROM '${lake}/binance/spot/trades/symbol=BTCUSDT/2024-01-03.parquet' ORDER BY id`,
    );
    expect(lines).toEqual(own.map(({ line }) => line));
    expect(lines.some((line) => /\.\d*0(,|$)/.test(line))).toBe(true);
  });
});

/** The digits of a double without exponent, by JavaScript. */
function plain(value: unknown): string {
  const text = String(value);
  const [, digits = '', fraction = '', exponent] = /^-?(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? [];
  if (exponent === undefined) return text;
  return `${text.startsWith('-') ? '-' : ''}0.${'0'.repeat(Number(exponent) - 1)}${digits}${fraction}`;
}

describe('export lean', () => {
  it('writes zips of bars and ticks, and funding rates', async () => {
    const lake = await lakeOf(
      `-m um -i 1h,1mo -s BTCUSDT ${RANGE}`,
      `-m cm -i 1d -s BTCUSD_PERP ${RANGE}`,
      '-m um --dataset aggTrades -s BTCUSDT --from 2024-01-01 --to 2024-01-01',
      `-m um --dataset fundingRate -s BTCUSDT ${RANGE}`,
    );
    const { target, ...result } = await newExport('lean', lake);
    expect([result.code, result.stdout]).toEqual([0, '']);
    expect(result.stderr).toContain('left out: um klines 1mo BTCUSDT: Lean has no resolution of 1mo');
    expect(filesOf(target)).toEqual([
      'cryptofuture/binance/daily/btcusd_trade.zip',
      'cryptofuture/binance/hour/btcusdt_trade.zip',
      'cryptofuture/binance/margin_interest/btcusdt.csv',
      'cryptofuture/binance/tick/btcusdt/20240101_trade.zip',
    ]);
    const unzip = (path: string, member: string): string[] => {
      const zip = readFileSync(join(target, path));
      expect(zip.toString('latin1', 30, 30 + zip.readUInt16LE(26))).toBe(member);
      return firstMember(zip).toString('utf8').trimEnd().split('\n');
    };
    const hours = await sql(
      `SELECT strftime(open_time, '%Y%m%d %H:%M') AS t, open, high, low, close, volume FROM '${lake}/binance/um/klines/interval=1h/symbol=BTCUSDT/*.parquet' ORDER BY open_time`,
    );
    expect(unzip('cryptofuture/binance/hour/btcusdt_trade.zip', 'btcusdt.csv')).toEqual(
      hours.map(({ t, open, high, low, close, volume }) =>
        [t, ...[open, high, low, close, volume].map(plain)].join(','),
      ),
    );
    const ticks = await sql(
      `SELECT epoch_ms(transact_time) % 86400000 AS t, price, quantity FROM '${lake}/binance/um/aggTrades/symbol=BTCUSDT/2024-01-01.parquet' ORDER BY agg_trade_id`,
    );
    expect(
      unzip('cryptofuture/binance/tick/btcusdt/20240101_trade.zip', '20240101_btcusdt_tick_trade.csv'),
    ).toEqual(ticks.map(({ t, price, quantity }) => [t, plain(price), plain(quantity)].join(',')));
    const rates = readFileSync(join(target, 'cryptofuture/binance/margin_interest/btcusdt.csv'), 'utf8');
    expect(rates).toMatch(/^20240101 00:00:00,-?0\.\d+\n20240101 08:00:00,-?0\.\d+\n/);
    expect(rates).not.toContain('e-');
  });
});

describe('export lean', () => {
  it('writes a zip of minutes and of quotes per day, and aggTrades before trades', async () => {
    const lake = await lakeOf(
      '-m um -i 1m -s BTCUSDT --from 2024-01-02 --to 2024-01-02',
      '-m um --dataset bookTicker -s BTCUSDT --from 2024-01-02 --to 2024-01-02',
      '-m spot --dataset aggTrades,trades -s BTCUSDT --from 2024-01-02 --to 2024-01-02',
    );
    const { target, ...result } = await newExport('lean', lake);
    expect(result.stderr).not.toContain('left out');
    expect(filesOf(target)).toEqual([
      'crypto/binance/tick/btcusdt/20240102_trade.zip',
      'cryptofuture/binance/minute/btcusdt/20240102_trade.zip',
      'cryptofuture/binance/tick/btcusdt/20240102_quote.zip',
    ]);
    const rowsIn = (path: string): string[] =>
      firstMember(readFileSync(join(target, path)))
        .toString('utf8')
        .trimEnd()
        .split('\n');
    const series = { trades: 'spot/aggTrades', minutes: 'um/klines/interval=1m', quotes: 'um/bookTicker' };
    const rowsOf = async (name: keyof typeof series, time: string, columns: string, order: string) => {
      const rows = await sql(
        `SELECT epoch_ms(${time}) % 86400000 AS t, ${columns} FROM '${lake}/binance/${series[name]}/symbol=BTCUSDT/*.parquet' ORDER BY ${order}`,
      );
      return rows.map(({ t, ...numbers }) => [t, ...Object.values(numbers).map(plain)].join(','));
    };
    expect(rowsIn('crypto/binance/tick/btcusdt/20240102_trade.zip')).toEqual(
      await rowsOf('trades', 'transact_time', 'price, quantity', 'agg_trade_id'),
    );
    const minutes = rowsIn('cryptofuture/binance/minute/btcusdt/20240102_trade.zip');
    expect(minutes).toHaveLength(1440);
    expect(minutes).toEqual(
      await rowsOf('minutes', 'open_time', 'open, high, low, close, volume', 'open_time'),
    );
    const quote = 'best_bid_price, best_bid_qty, best_ask_price, best_ask_qty';
    expect(rowsIn('cryptofuture/binance/tick/btcusdt/20240102_quote.zip')).toEqual(
      await rowsOf('quotes', 'transaction_time', quote, 'transaction_time, update_id'),
    );
  });
});

describe('export csv', () => {
  it('writes each form of times, with all digits', async () => {
    const lake = await lakeOf(`-m um --dataset fundingRate -s BTCUSDT ${RANGE}`);
    const forms = {
      us: 'epoch_us(calc_time)::VARCHAR',
      ms: 'epoch_ms(calc_time)::VARCHAR',
      s: 'epoch_us(calc_time) // 1000000',
      iso: "strftime(calc_time, '%Y-%m-%dT%H:%M:%S.%fZ')",
    };
    for (const [form, text] of Object.entries(forms)) {
      const { target } = await newExport('csv', lake, '--columns', 'calc_time', '--time-format', form);
      const rows = await sql(
        `SELECT ${text} AS t FROM '${lake}/binance/um/fundingRate/symbol=BTCUSDT/*.parquet' ORDER BY calc_time`,
      );
      const [, ...lines] = linesOf(target, 'um_fundingRate/BTCUSDT.csv');
      expect(lines).toEqual(rows.map(({ t }) => String(t)));
      // All are equally long, so that pandas reads them with one format.
      expect(new Set(lines.map((line) => line.length)).size).toBe(1);
    }
  });

  it('writes chosen columns, names, constants and times, with a delimiter', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const target = newTarget();
    const columns = ['--columns', 'datetime=open_time,open,close,openinterest=0,symbol', '--delimiter', ';'];
    await exported('csv', lake, target, ...columns, '--time-format', '%Y-%m-%d %H:%M:%S');
    expect(filesOf(target)).toEqual(['um_klines_1h/BTCUSDT.csv', 'um_klines_1h/ETHUSDT.csv']);
    const lines = readFileSync(join(target, 'um_klines_1h/ETHUSDT.csv'), 'utf8').split('\n');
    const [row] = await sql(
      `SELECT open, close FROM '${lake}/binance/um/klines/interval=1h/symbol=ETHUSDT/2024-01.parquet' LIMIT 1`,
    );
    expect(lines.slice(0, 2)).toEqual([
      'datetime;open;close;openinterest;symbol',
      `2024-01-01 00:00:00;${plain(row?.['open'])};${plain(row?.['close'])};0;ETHUSDT`,
    ]);
    expect(lines).toHaveLength(1 + 1440 + 1);
  });

  it('writes one file of all symbols, ordered by time and symbol', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const { target } = await newExport(
      'csv',
      lake,
      '--one-file',
      '--columns',
      'open_time,symbol',
      '--time-format',
      'ms',
    );
    expect(filesOf(target)).toEqual(['um_klines_1h.csv']);
    const lines = linesOf(target, 'um_klines_1h.csv');
    const start = Date.UTC(2024, 0, 1);
    expect(lines.slice(0, 4)).toEqual([
      'open_time,symbol',
      `${start},BTCUSDT`,
      `${start},ETHUSDT`,
      `${start + 3_600_000},BTCUSDT`,
    ]);
    expect(lines).toHaveLength(1 + 2880);
    const trades = await lakeOf(`-m um --dataset aggTrades -s BTCUSDT,ETHUSDT ${RANGE}`);
    await exported('csv', trades, target, '--one-file', '--columns', 'transact_time,symbol');
    const times = linesOf(target, 'um_aggTrades.csv').slice(1);
    expect(times).toEqual(times.toSorted());
  });

  it('has all rows of a dataset whose last row lies on the next day', async () => {
    const lake = await lakeOf(
      '-m um --dataset metrics -s BTCUSDT --from 2024-01-01 --to 2024-01-03 --partition day',
    );
    const { target } = await newExport('csv', lake);
    const [{ n, last } = {}] = await sql(
      `SELECT count(*) AS n, strftime(max(create_time), '%Y-%m-%dT%H:%M:%S.%fZ') AS last FROM '${lake}/binance/um/metrics/symbol=BTCUSDT/*.parquet'`,
    );
    const lines = linesOf(target, 'um_metrics/BTCUSDT.csv');
    expect(lines).toHaveLength(Number(n) + 1);
    expect(lines.at(-1)?.split(',')[0]).toBe(last);
    expect(last).toBe('2024-01-04T00:00:00.000000Z');
    // Of a day without an object, the lake has the row at its start.
    const next = newTarget();
    expect((await exported('csv', lake, next, '--from', '2024-01-04', '--to', '2024-01-04')).code).toBe(0);
    const own = linesOf(next, 'um_metrics/BTCUSDT.csv');
    expect(own.slice(1)).toEqual(lines.slice(-1));
    // The first row of a day is in the object of the day before.
    const { target: day } = await newExport('csv', lake, '--from', '2024-01-03', '--to', '2024-01-03');
    const times = linesOf(day, 'um_metrics/BTCUSDT.csv')
      .slice(1)
      .map((line) => line.split(',')[0]);
    expect([times.length, times[0], times.at(-1)]).toEqual([
      288,
      '2024-01-03T00:00:00.000000Z',
      '2024-01-03T23:55:00.000000Z',
    ]);
  });

  it('reads CSV lakes, and lakes with time zones, also where the local time is not UTC', async () => {
    const parquet = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const csv = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE} --format csv --timestamps iso`);
    const utc = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE} --timestamps utc`);
    const texts: string[] = [];
    for (const lake of [parquet, csv, utc]) {
      const target = newTarget();
      const flags = ['--out', lake, '--target', target, '--from', '2024-01-31', '--to', '2024-02-01'];
      const result = await cryptodl(['export', 'csv', ...flags, '--now', scene.now], {
        env: { TZ: 'Asia/Tokyo' },
      });
      expect([result.code, result.stdout]).toEqual([0, '']);
      texts.push(readFileSync(join(target, 'um_klines_1h/BTCUSDT.csv'), 'utf8'));
    }
    const lines = texts[0]?.trimEnd().split('\n') ?? [];
    expect([lines.length, lines[1]?.slice(0, 19), lines.at(-1)?.slice(0, 19)]).toEqual([
      49,
      '2024-01-31T00:00:00',
      '2024-02-01T23:00:00',
    ]);
    expect(texts[1]).toBe(texts[0]);
    expect(texts[2]).toBe(texts[0]);
  });
});

describe('a repeated export', () => {
  it('writes only files whose sources have changed', async () => {
    const lake = await lakeOf(`-m um ${KLINES} --from 2024-01 --to 2024-01`);
    const { target } = await newExport('freqtrade', lake);
    const again = await exported('freqtrade', lake, target, '--json');
    expect(outcomes(again)).toEqual({
      'futures/BTC_USDT_USDT-1h-futures.parquet': 'unchanged',
      'futures/ETH_USDT_USDT-1h-futures.parquet': 'unchanged',
    });
    await scene.vision(`-m um -i 1h -s BTCUSDT ${RANGE}`, { lake: lake.slice(scene.scratch.length + 1) });
    const plan = await exported('freqtrade', lake, target, '--dry-run');
    expect(plan.stdout).toBe('write\tfutures/BTC_USDT_USDT-1h-futures.parquet\n');
    const third = await exported('freqtrade', lake, target, '--json');
    expect(outcomes(third)).toEqual({
      'futures/BTC_USDT_USDT-1h-futures.parquet': 'written',
      'futures/ETH_USDT_USDT-1h-futures.parquet': 'unchanged',
    });
    expect(
      await sql(`SELECT count(*) AS n FROM '${target}/futures/BTC_USDT_USDT-1h-futures.parquet'`),
    ).toEqual([{ n: '1440' }]);
  });

  it('of a range stays when the lake gets days outside of it', async () => {
    const lake = await lakeOf('-m um -i 1m -s BTCUSDT --from 2024-01-01 --to 2024-01-01 --partition day');
    const target = newTarget();
    const day = ['--from', '2024-01-01', '--to', '2024-01-01', '--json'];
    await exported('csv', lake, target, ...day);
    const name = lake.slice(scene.scratch.length + 1);
    await scene.vision('-m um -i 1m -s BTCUSDT --from 2024-01-03 --to 2024-01-03 --exact --partition day', {
      lake: name,
    });
    expect(outcomes(await exported('csv', lake, target, ...day))).toEqual({
      'um_klines_1m/BTCUSDT.csv': 'unchanged',
    });
  });

  it('of fewer days keeps the days that a file has, and one of other days extends it', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const target = newTarget();
    const daysOf = async (...flags: readonly string[]): Promise<unknown[]> => {
      const result = await exported('csv', lake, target, '--json', ...flags);
      const days = await sql(
        `SELECT DISTINCT open_time[:10] AS day FROM read_csv('${target}/um_klines_1h/BTCUSDT.csv', types = {'open_time': 'VARCHAR'}) ORDER BY 1`,
      );
      const texts = days.map(({ day }) => String(day));
      return [outcomes(result)['um_klines_1h/BTCUSDT.csv'], texts.length, texts[0], texts.at(-1)];
    };
    const on = (from: string, to: string): string[] => ['--from', from, '--to', to];
    const middle = on('2024-01-10', '2024-01-12');
    expect(await daysOf(...middle)).toEqual(['written', 3, '2024-01-10', '2024-01-12']);
    expect(await daysOf(...on('2024-01-15', '2024-01-16'))).toEqual([
      'written',
      7,
      '2024-01-10',
      '2024-01-16',
    ]);
    expect(await daysOf(...middle)).toEqual(['unchanged', 7, '2024-01-10', '2024-01-16']);
    expect(await daysOf()).toEqual(['written', 60, '2024-01-01', '2024-02-29']);
    expect(await daysOf(...middle)).toEqual(['unchanged', 60, '2024-01-01', '2024-02-29']);
    expect(await daysOf('--force', ...middle)).toEqual(['written', 3, '2024-01-10', '2024-01-12']);
  });

  it('writes a file again that another rule makes, or that is gone', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const { target } = await newExport('csv', lake);
    const other = await exported('csv', lake, target, '--delimiter', ';', '--json');
    expect(outcomes(other)).toEqual({ 'um_klines_1h/BTCUSDT.csv': 'written' });
    rmSync(join(target, 'um_klines_1h/BTCUSDT.csv'));
    const gone = await exported('csv', lake, target, '--delimiter', ';', '--json');
    expect(outcomes(gone)).toEqual({ 'um_klines_1h/BTCUSDT.csv': 'written' });
    // A copy of the folder has other times of change, and the same bytes.
    utimesSync(join(target, 'um_klines_1h/BTCUSDT.csv'), 1, 1);
    const copied = await exported('csv', lake, target, '--delimiter', ';', '--json');
    expect(outcomes(copied)).toEqual({ 'um_klines_1h/BTCUSDT.csv': 'unchanged' });
  });

  it('replaces no file that it did not write or that has changed', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const target = newTarget();
    const btc = join(target, 'um_klines_1h/BTCUSDT.csv');
    mkdirSync(join(target, 'um_klines_1h'), { recursive: true });
    writeFileSync(btc, 'mine');
    const first = await exported('csv', lake, target);
    expect([first.code, first.stdout]).toEqual([
      4,
      expect.stringMatching(
        /^foreign\tum_klines_1h\/BTCUSDT\.csv\t--target .* is not an unchanged file of cryptodl export, and is not replaced; choose another --target, or add --force\n$/,
      ),
    ]);
    expect(readFileSync(btc, 'utf8')).toBe('mine');
    expect(existsSync(join(target, 'um_klines_1h/ETHUSDT.csv'))).toBe(true);
    expect((await exported('csv', lake, target, '--force')).code).toBe(0);
    appendFileSync(btc, 'a row of another program\n');
    expect(outcomes(await exported('csv', lake, target, '--json'))).toEqual({
      'um_klines_1h/BTCUSDT.csv': 'foreign',
      'um_klines_1h/ETHUSDT.csv': 'unchanged',
    });
    expect((await exported('csv', lake, target, '-s', 'ETHUSDT', '--days', '45')).code).toBe(0);
    expect(readFileSync(join(target, 'um_klines_1h/ETHUSDT.csv'), 'utf8')).toContain(
      '\n2024-01-25T00:00:00.',
    );
  });

  it('gives the same zips in each time zone', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const zips: Buffer[] = [];
    for (const TZ of ['UTC', 'Asia/Kolkata']) {
      const target = newTarget();
      const result = await cryptodl(['export', 'lean', '--out', lake, '--target', target], { env: { TZ } });
      expect(result.code).toBe(0);
      zips.push(readFileSync(join(target, 'cryptofuture/binance/hour/btcusdt_trade.zip')));
    }
    expect(zips[1]?.equals(zips[0] ?? Buffer.alloc(0))).toBe(true);
  });

  it('has no file without rows', async () => {
    const lake = await lakeOf(`-m um --dataset markPriceKlines -i 1h -s BTCUSDT ${RANGE}`);
    const target = newTarget();
    // No candle of 48 hours is complete within a day.
    const mark = 'futures/BTC_USDT_USDT-48h-mark.parquet';
    const on = (day: string): string[] => ['--from', day, '--to', day, '--mark-interval', '48h'];
    const outcomeOf = async (...flags: readonly string[]): Promise<unknown> =>
      outcomes(await exported('freqtrade', lake, target, '--json', ...flags))[mark];
    const day = on('2024-01-02');
    expect([await outcomeOf(...day), existsSync(join(target, mark)), await outcomeOf(...day)]).toEqual([
      'empty',
      false,
      'empty',
    ]);
    expect(await outcomeOf(...on('2024-01-03'))).toBe('empty');
    const many = ['--mark-interval', '48h,3d,4d,5d,6d', '--from', '2024-01-02', '--to', '2024-01-02'];
    const { stderr } = await exported('freqtrade', lake, newTarget(), ...many);
    expect(stderr).toMatch(/^without rows: .*-48h-mark\.parquet.* and 2 more$/m);
    expect(await exported('freqtrade', lake, newTarget(), '--quiet', ...many)).toMatchObject({
      code: 0,
      stderr: '',
    });
    writeFileSync(join(target, mark), '');
    expect([await outcomeOf(...day), existsSync(join(target, mark))]).toEqual(['foreign', true]);
    expect([await outcomeOf(...day, '--force'), existsSync(join(target, mark))]).toEqual(['empty', false]);
    expect(filesBelow(target).filter((path) => path.includes('staged'))).toEqual([]);
  });

  it('has provenance: the files of the lake with their digests', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const { target } = await newExport('freqtrade', lake);
    const line = stateOf(target, 'futures/BTC_USDT_USDT-1h-futures.parquet');
    const folder = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
    const digestOf = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');
    expect(line).toMatchObject({
      engine: 'freqtrade',
      rows: 1440,
      sha256: digestOf(join(target, 'futures/BTC_USDT_USDT-1h-futures.parquet')),
      sources: ['2024-01', '2024-02'].map((month) => ({
        file: `${folder}/${month}.parquet`,
        sha256: digestOf(join(lake, folder, `${month}.parquet`)),
      })),
    });
  });
});

/** How a file was made. */
function stateOf(target: string, file: string): unknown {
  return JSON.parse(readFileSync(join(target, `.cryptodl-export/${file}.json`), 'utf8'));
}

function outcomes({ events }: CliResult): Record<string, unknown> {
  return Object.fromEntries(
    events.filter(({ event }) => event === 'file').map(({ file, outcome }) => [String(file), outcome]),
  );
}

describe('the state of the target', () => {
  it('may have a damaged state of a file, which then counts as foreign', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const { target } = await newExport('csv', lake);
    for (const text of ['', 'null', '{"v":1,"sha256":"to']) {
      writeFileSync(join(target, '.cryptodl-export/um_klines_1h/BTCUSDT.csv.json'), text);
      const result = await exported('csv', lake, target, '--json');
      expect([result.code, outcomes(result)]).toEqual([
        4,
        { 'um_klines_1h/BTCUSDT.csv': 'foreign', 'um_klines_1h/ETHUSDT.csv': 'unchanged' },
      ]);
    }
  });

  it('may have symbolic links: none is followed, and nothing behind them is removed', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const outside = scene.newFolder();
    mkdirSync(join(outside, 'tmp'));
    writeFileSync(join(outside, 'tmp/precious'), 'x');
    for (const link of ['um_klines_1h', '.cryptodl-export', 'um_klines_1h/BTCUSDT.csv']) {
      const target = newTarget();
      mkdirSync(join(target, link, '..'), { recursive: true });
      symlinkSync(link.endsWith('.csv') ? join(outside, 'tmp/precious') : outside, join(target, link));
      const result = await exported('csv', lake, target, '--force');
      const isRecord = link === '.cryptodl-export';
      expect([link, result.code]).toEqual([link, isRecord ? 1 : 4]);
      expect(isRecord ? result.stderr : result.stdout).toContain(
        link.endsWith('.csv')
          ? 'is a link, and is not replaced; choose another --target'
          : 'is a symbolic link; links below the lake or the target are not followed',
      );
    }
    expect(filesBelow(outside)).toEqual(['tmp/precious']);
    expect(readFileSync(join(outside, 'tmp/precious'), 'utf8')).toBe('x');
  });

  it('has one export at a time', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const target = newTarget();
    const lock = await acquireLock(join(target, '.cryptodl-export'), {
      command: 'cryptodl export',
      clock: systemClock,
      onLost: () => undefined,
    });
    const refused = await cryptodlProcess(['export', 'csv', '--out', lake, '--target', target]);
    expect([refused.code, filesOf(target)]).toEqual([6, []]);
    await lock.release();
    expect((await exported('csv', lake, target)).code).toBe(0);
  });

  it('keeps a file that appears while the rows are read', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    const target = newTarget();
    const path = join(target, 'um_klines_1h/BTCUSDT.csv');
    const appear = (): void => {
      mkdirSync(join(target, 'um_klines_1h'), { recursive: true });
      writeFileSync(path, 'a file of the user');
    };
    const result = await whileStaged(join(target, '.cryptodl-export'), appear, () =>
      exported('csv', lake, target, '--json'),
    );
    expect([result.code, outcomes(result)]).toEqual([4, { 'um_klines_1h/BTCUSDT.csv': 'foreign' }]);
    expect(readFileSync(path, 'utf8')).toBe('a file of the user');
    expect(filesBelow(target).filter((name) => name.includes('staged'))).toEqual([]);
  });

  it('is left as it is by an export that has lost its lock', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const target = newTarget();
    const { code, stderr } = await whileLosingLock(join(target, '.cryptodl-export'), () =>
      exported('csv', lake, target),
    );
    expect([code, stderr]).toEqual([6, expect.stringContaining('has lost the lock') as string]);
    expect(filesBelow(target)).toEqual(['.cryptodl-export/lock.json']);
  });
});

describe('data that the lake lacks', () => {
  it('is told before the export, and refuses it with --require-complete', async () => {
    const lake = await lakeOf(
      '-m um --dataset aggTrades -s BTCUSDT --from 2024-01-01 --to 2024-01-01',
      '-m um --dataset aggTrades -s BTCUSDT --from 2024-01-03 --to 2024-01-03 --recheck-days 0',
    );
    const { target, ...refused } = await newExport('tardis', lake, '--require-complete');
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain('the lake lacks um aggTrades BTCUSDT: 2024-01-02');
    expect(refused.stderr).toContain('nothing is exported, because --require-complete is given');
    expect(existsSync(target)).toBe(false);
    const done = await exported('tardis', lake, target);
    expect(done.code).toBe(0);
    expect(done.stderr.indexOf('the lake lacks')).toBeLessThan(done.stderr.indexOf('files written'));
    expect(filesOf(target)).toHaveLength(2);
  });

  it('includes series that are held only as zips, and files that are gone', async () => {
    const zips = await lakeOf(`-m um -i 1h -s BTCUSDT --from 2024-01 --to 2024-01 --format zip`);
    const { target, ...result } = await newExport('csv', zips, '--require-complete');
    expect([result.code, result.stderr]).toEqual([
      4,
      expect.stringContaining('no Parquet or CSV files') as string,
    ]);
    expect((await exported('csv', zips, target)).code).toBe(4);
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`);
    rmSync(join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT/2024-01.parquet'));
    const lost = await exported('csv', lake, target, '--require-complete');
    expect(lost.code).toBe(4);
    expect(lost.stderr).toContain('the lake lacks um klines 1h BTCUSDT');
  });
});

describe('a symbol without rows for 30 days or more', () => {
  it('between others is named, because the name may stand for another asset', async () => {
    const archive = scene.newFolder();
    for (const [from, to] of [
      ['2024-01-01', '2024-01-05'],
      ['2024-02-05', '2024-02-10'],
    ] as const)
      makeArchive(archive, {
        ...DAYS,
        from,
        to,
        market: 'um',
        dataset: 'klines',
        interval: '1h',
        symbols: ['BTCUSDT'],
      });
    const served = await startArchive(archive);
    const flags = `-m um -i 1h -s BTCUSDT --from 2024-01-01 --to 2024-02-10 --archive-url ${served.url}`;
    const { lake } = await scene.vision(flags);
    await served.close();
    const warning = 'no rows for 30 days or more between others';
    const both = await exported('csv', lake, newTarget());
    expect(both.stderr).toContain(`warning: BTCUSDT: ${warning}`);
    for (const range of ['--from 2024-02-01 --to 2024-02-10', '--from 2024-01-01 --to 2024-02-04']) {
      const { stderr } = await exported('csv', lake, newTarget(), ...range.split(' '));
      expect([range, stderr]).toEqual([range, expect.not.stringContaining(warning) as string]);
    }
  });
});

describe('a damaged file of the lake', () => {
  const FILE = 'binance/um/klines/interval=1h/symbol=BTCUSDT/2024-01.parquet';

  it('of another size, or missing, leaves the earlier export of its series, and ends with exit code 4', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const { target } = await newExport('csv', lake);
    const before = readFileSync(join(target, 'um_klines_1h/BTCUSDT.csv'), 'utf8');
    appendFileSync(join(lake, FILE), 'x');
    for (const flags of [[], ['--force'], ['--quiet']]) {
      const result = await exported('csv', lake, target, ...flags);
      expect(result.code).toBe(4);
      expect(result.stderr).toContain(
        `2024-01.parquet is missing or damaged; cryptodl verify --fix --out ${lake}, then cryptodl repair --out ${lake}, fetches its objects again`,
      );
      expect(readFileSync(join(target, 'um_klines_1h/BTCUSDT.csv'), 'utf8')).toBe(before);
    }
    const { target: other, ...complete } = await newExport('csv', lake, '--require-complete');
    expect([complete.code, existsSync(other)]).toEqual([4, false]);
    rmSync(join(lake, FILE));
    expect((await exported('freqtrade', lake, other)).code).toBe(4);
    expect(filesOf(other)).toEqual(['futures/ETH_USDT_USDT-1h-futures.parquet']);
  });

  it('of the same size is named, and the other series are exported', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    flipByte(join(lake, FILE), 300);
    const { target, ...result } = await newExport('freqtrade', lake);
    expect([result.code, result.stderr]).toEqual([4, expect.not.stringContaining('unexpected') as string]);
    expect(result.stdout).toContain('unreadable\tfutures/BTC_USDT_USDT-1h-futures.parquet\t');
    expect(result.stdout).toContain(
      `2024-01.parquet does not have the content that was committed; cryptodl verify --fix --out ${lake}, then`,
    );
    expect(filesOf(target)).toEqual(['futures/ETH_USDT_USDT-1h-futures.parquet']);
  });

  it('or manifest stops only its series', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    writeFileSync(
      join(lake, '_manifests/binance/um/klines/interval=1h/symbol=BTCUSDT.jsonl'),
      '{"v":7}\n[]\n',
    );
    const { target, ...result } = await newExport('freqtrade', lake);
    expect(result.code).toBe(4);
    expect(result.stderr).toContain('left out: um klines 1h BTCUSDT');
    expect(filesOf(target)).toEqual(['futures/ETH_USDT_USDT-1h-futures.parquet']);
  });
});

/** Changes the time of a file at each turn of the event loop, so also between two looks at it. */
async function whileChanging<T>(path: string, act: () => Promise<T>): Promise<T> {
  let seconds = 1;
  let isOver = false;
  const change = (): void => {
    if (isOver) return;
    utimesSync(path, seconds, seconds);
    seconds += 1;
    setImmediate(change);
  };
  change();
  try {
    return await act();
  } finally {
    isOver = true;
  }
}

describe('a file of the lake that changes during the export', () => {
  it('leaves the earlier export of its series, and ends with exit code 3', async () => {
    const lake = await lakeOf(`-m um ${KLINES} ${RANGE}`);
    const target = newTarget();
    const btc = join(target, 'um_klines_1h/BTCUSDT.csv');
    await exported('csv', lake, target, '-s', 'BTCUSDT', '--delimiter', ';');
    const before = readFileSync(btc, 'utf8');
    const file = join(lake, 'binance/um/klines/interval=1h/symbol=BTCUSDT/2024-01.parquet');
    const changed = await whileChanging(file, () => exported('csv', lake, target));
    expect([changed.code, changed.stdout]).toEqual([
      3,
      'failed\tum_klines_1h/BTCUSDT.csv\tum klines 1h BTCUSDT: files of the lake changed during the export; run the export again when no run writes to the lake\n',
    ]);
    expect(changed.stderr).toContain('1 file written');
    expect(changed.stderr).toContain('1 not written');
    expect(readFileSync(btc, 'utf8')).toBe(before);
    expect(filesBelow(target).filter((path) => path.includes('staged'))).toEqual([]);
    expect(outcomes(await exported('csv', lake, target, '--json'))).toEqual({
      'um_klines_1h/BTCUSDT.csv': 'written',
      'um_klines_1h/ETHUSDT.csv': 'unchanged',
    });
  });
});

describe('a wrong command line of export', () => {
  it.each([
    ['export', 'export needs a program to write for: freqtrade, tardis, lean, csv, nautilus-loader'],
    ['export freqtrade --target s3://bucket/x', 'takes a local folder, and no bucket'],
    ['export freqtrade --target LAKE', 'is in the lake'],
    ['export freqtrade --target FILE', 'is a file'],
    ['export freqtrade --target x --delimiter ;', '--delimiter is for export csv, not for export freqtrade'],
    ['export csv --target x --columns open_tim', 'klines has no column open_tim'],
    ['export freqtrade --target x --dataset metrics', 'holds no metrics'],
  ])('%s', async (line, message) => {
    const lake = held;
    const file = join(scene.scratch, 'a-file');
    writeFileSync(file, '');
    const words = line.split(' ').map((word) => word.replace('LAKE', lake).replace('FILE', file));
    const result = await cryptodl([...words, ...(line.includes('LAKE --') ? [] : ['--out', lake])], {
      cwd: scene.newFolder(),
    });
    expect([result.code, result.stdout]).toEqual([2, '']);
    expect(result.stderr).toContain(message);
  });
  let held = '';
  beforeAll(async () => {
    held = await lakeOf(`-m um -i 1h -s BTCUSDT --from 2024-01 --to 2024-01`);
  });
});

describe('bars of the lake', () => {
  it('are exported like klines, where the lake has no klines of their length', async () => {
    const lake = await lakeOf(`-m um -i 1h -s BTCUSDT ${RANGE}`, `-m um -i 1h,1mo -s BTCUSDT ${RANGE}`);
    for (const bar of ['4h', '1d'])
      expect((await cryptodl(['bars', bar, '-i', '1h', '--out', lake, '--now', scene.now])).code).toBe(0);
    const target = newTarget();
    expect((await exported('freqtrade', lake, target)).code).toBe(0);
    expect(filesOf(target)).toEqual(
      ['1Mo', '1d', '1h', '4h'].map((interval) => `futures/BTC_USDT_USDT-${interval}-futures.parquet`),
    );
    expect(await sql(candlesOf(`${target}/futures/BTC_USDT_USDT-4h-futures.parquet`))).toEqual(
      await sql(
        `SELECT epoch_us(time_bucket(INTERVAL 4 HOUR, open_time)) AS date, arg_min(open, open_time) AS open, max(high) AS high, min(low) AS low, arg_max(close, open_time) AS close, sum(volume::DECIMAL(38, 8))::DOUBLE AS volume FROM '${lake}/binance/um/klines/interval=1h/symbol=BTCUSDT/*.parquet' GROUP BY 1 ORDER BY 1`,
      ),
    );
    const lean = newTarget();
    expect((await exported('lean', lake, lean)).stderr).toContain('Lean has no resolution of 4h');
    expect(filesOf(lean)).toEqual(
      ['daily', 'hour'].map((resolution) => `cryptofuture/binance/${resolution}/btcusdt_trade.zip`),
    );
  });
});
