/** What the exchange really answered: recordings of several years, kept outside the repository. */
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { BINANCE_ANSWERS } from '../../../src/exchange/binance/answers.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../../src/model/errors.js';
import { readExchangeInfo } from '../../../src/exchange/binance/exchange-info.js';
import type { ExchangeInfo } from '../../../src/exchange/binance/exchange-info.js';
import { seriesPages } from '../../../src/exchange/binance/series-pages.js';
import { readRestPage } from '../../../src/exchange/binance/series-pages.js';
import { rowsAsCsv } from '../../../src/exchange/rest-csv.js';
import type { RestRow } from '../../../src/exchange/rest-rows.js';
import type { Market } from '../../../src/model/task.js';
import { statusError } from '../../../src/http/transport/error-map.js';
import type { ColumnSpec, RouteSpec } from '../../../src/exchange/facts.js';
import { datasetsOf } from '../../../src/exchange/exchange-spec.js';
import type { DatasetSpec } from '../../../src/exchange/exchange-spec.js';
import { MARKETS } from '../../../src/exchange/names.js';
import { specOf } from '../../helpers/conversion.js';
import { clientOf } from '../../helpers/rest-client.js';
import { allPages, routeOf } from '../../helpers/rest-rows.js';
import { REST_SAMPLES, firstMember, readPublished, restSamplesMissing } from '../../helpers/samples.js';

const missing = restSamplesMissing('index.json', 'errors/errors.json');
if (missing !== undefined) process.stderr.write(`recorded answers: ${missing}\n`);

type Kind = 'recorded' | 'documented';

interface Sample {
  readonly file: string;
  readonly kind: Kind;
  /** `fapi`, `dapi` or `spot`. */
  readonly host: RouteSpec['host'];
  readonly path: string;
  readonly body: unknown;
}

const HOSTS: Readonly<Record<string, RouteSpec['host']>> = {
  'fapi.binance.com': 'fapi',
  'dapi.binance.com': 'dapi',
  'api.binance.com': 'spot',
};

function jsonOf(file: string): unknown {
  return JSON.parse(readFileSync(join(REST_SAMPLES, file), 'utf8')) as unknown;
}

function hostOf(path: string): RouteSpec['host'] {
  if (path.startsWith('/api/')) return 'spot';
  return path.startsWith('/dapi/') ? 'dapi' : 'fapi';
}

interface Listed {
  readonly file: string;
  readonly endpoint: string;
  readonly host?: string;
}

function samplesOf({ file, endpoint: path, host }: Listed): Sample[] {
  const [folder = ''] = file.split('/');
  if (folder === 'recorded-gocryptotrader') {
    const records = jsonOf(file) as readonly { host: string; path: string; body: unknown }[];
    return records.map((record) => ({
      ...record,
      file,
      kind: 'recorded',
      host: HOSTS[record.host] ?? 'spot',
    }));
  }
  if (folder.startsWith('recorded-'))
    return [{ file, path, kind: 'recorded', host: HOSTS[host ?? ''] ?? hostOf(path), body: jsonOf(file) }];
  if (!folder.startsWith('doc-derived')) return [];
  // Method, path, whether it is signed; then what is answered.
  const [, documented = '', , ...lines] = readFileSync(join(REST_SAMPLES, file), 'utf8').split('\n');
  const product = file.includes('CoinFutures__') ? 'dapi' : hostOf(documented.trim());
  const body: unknown = JSON.parse(lines.join('\n'));
  return [{ file, path: documented.trim(), kind: 'documented', host: product, body }];
}

interface Routed {
  readonly market: Market;
  readonly spec: DatasetSpec;
  readonly route: RouteSpec;
}

const ROUTES: Routed[] = MARKETS.flatMap((market) =>
  datasetsOf(loadBinance(), market).flatMap((spec) =>
    spec.rest === undefined || 'joins' in spec.rest ? [] : [{ market, spec, route: spec.rest }],
  ),
);

/** One row at a time: what order a recording has, and what it was asked for, is not known any more. */
function rowOf(cells: unknown, route: RouteSpec): RestRow {
  const { symbol, pair = '' } = cells as { symbol?: string; pair?: string };
  const all = { startTime: 0, endTime: 4_133_404_800_000 };
  const [row] = readRestPage([cells], route, all, { symbol: symbol ?? pair });
  if (row === undefined) throw new Error('no row');
  return row;
}

const CELLS: Readonly<Partial<Record<ColumnSpec['type'], RegExp>>> = {
  time: /^1\d{12}$/,
  number: /^-?\d+(\.\d+)?$/,
  integer: /^\d+$/,
  flag: /^(true|false)$/,
};

/** Made out of its neighbours, which one row does not have. */
const DERIVED = 'funding_interval_hours';
const SUPPLY_FROM = Date.UTC(2025, 6, 2);

function expectCells(line: string, { columns }: DatasetSpec): void {
  const cells = line.split(',');
  expect(cells).toHaveLength(columns.length);
  for (const [index, { name, type, nullable }] of columns.entries()) {
    const cell = cells[index] ?? '';
    if (cell === '') expect(nullable || name === DERIVED ? name : `${name} in ${line}`).toBe(name);
    else expect(cell, `${name} in ${line}`).toMatch(CELLS[type] ?? /./);
  }
}

/** Two recordings lost the name of this key. */
const isDamaged = (cells: unknown): boolean => typeof cells === 'object' && cells !== null && '' in cells;

describe.skipIf(missing !== undefined)('every recorded sample parses', () => {
  const index = missing === undefined ? (jsonOf('index.json') as Listed[]) : [];
  const samples = index.flatMap(samplesOf);
  const rowsFor = ({ route }: Routed, kind: Kind): unknown[] =>
    samples
      .filter((sample) => sample.kind === kind && sample.host === route.host && sample.path === route.path)
      // Three of them are refusals.
      .flatMap(({ body }) => (Array.isArray(body) ? (body as unknown[]) : []))
      .filter((cells) => !isDamaged(cells));

  it.each(ROUTES.map((routed) => [`${routed.market} ${routed.spec.name}`, routed] as const))(
    '%s',
    (_, routed) => {
      const recorded = rowsFor(routed, 'recorded');
      const rows = recorded.length > 0 ? recorded : rowsFor(routed, 'documented');
      expect(rows.length).toBeGreaterThan(0);
      const { route, spec } = routed;
      const csv = rowsAsCsv(
        rows.map((cells) => rowOf(cells, route)),
        { spec, symbol: 'BTCUSDT', microseconds: false },
      );
      const [header, ...lines] = csv.toString('utf8').trimEnd().split('\n');
      expect(header?.split(',')).toEqual(spec.columns.map(({ published, name }) => published ?? name));
      expect(lines).toHaveLength(rows.length);
      for (const line of lines) expectCells(line, spec);
    },
  );

  it('and so do the examples of the documents', () => {
    const documented = ROUTES.filter((routed) => rowsFor(routed, 'documented').length > 0);
    expect(documented.length).toBeGreaterThan(20);
    for (const routed of documented) {
      for (const cells of rowsFor(routed, 'documented')) {
        const row = rowOf(cells, routed.route);
        const options = { spec: routed.spec, symbol: 'BTCUSDT', microseconds: false };
        expectCells(rowsAsCsv([row], options).toString('utf8').trimEnd().split('\n')[1] ?? '', routed.spec);
      }
    }
  });

  it.each<[Market, string, number]>([
    ['spot', 'klines', 3406],
    ['spot', 'aggTrades', 1039],
    ['um', 'fundingRate', 116],
    ['cm', 'fundingRate', 61],
    ['um', 'topLongShortAccountRatio', 6],
    ['cm', 'takerLongShortRatio', 13],
  ])('and of %s %s there are %d or more', (market, dataset, rows) => {
    const routed = { market, spec: specOf(market, dataset), route: routeOf(market, dataset) };
    expect(rowsFor(routed, 'recorded').length).toBeGreaterThanOrEqual(rows);
  });

  /** The first one. */
  const lineOf = (market: Market, dataset: string, file: string): string | undefined => {
    const spec = specOf(market, dataset);
    const [cells] = jsonOf(file) as unknown[];
    const row = rowOf(cells, routeOf(market, dataset));
    return rowsAsCsv([row], { spec, symbol: 'BTCUSDT', microseconds: false }).toString('utf8').split('\n')[1];
  };

  it.each<[Market, string, string, string]>([
    ['um', 'fundingRate', 'recorded-polyoxide/funding_rate.json', '1791302400000,,0.00002245,85675.20000000'],
    ['um', 'fundingRate', 'recorded-polyoxide/funding_rate_2019.json', '1568102400000,,0.00010000,'],
    [
      'um',
      'klines',
      'recorded-polyoxide/klines.json',
      '1791382920000,83137.90,83155.70,83082.90,83084.90,102.437,1791382979999,8514292.61220,4409,49.832,4141805.93340,0',
    ],
    [
      'um',
      'aggTrades',
      'recorded-polyoxide/agg_trades.json',
      '3477868380,83084.30,0.002,8153634282,8153634282,1791382990569,true',
    ],
    [
      'um',
      'openInterestHist',
      'recorded-futures-data-2026/um__openInterestHist.json',
      '1791284400000,94731.04600000,8157280897.95540000,20094037.00000000',
    ],
    [
      'um',
      'takerLongShortRatio',
      'recorded-futures-data-2026/um__takerlongshortRatio.json',
      '1791283500000,0.9752,153.8640,157.7690',
    ],
    [
      'um',
      'globalLongShortAccountRatio',
      'recorded-futures-data-2026/um__globalLongShortAccountRatio.json',
      '1790046000000,0.8629,0.4632,0.5368',
    ],
    [
      'um',
      'basis',
      'recorded-futures-data-2026/um__basis.json',
      '1791283500000,86189.99021739,86137.10,-52.89021739,-0.0006,',
    ],
    [
      'cm',
      'topLongShortPositionRatio',
      'recorded-futures-data-2026/cm__topLongShortPositionRatio.json',
      '1791284100000,2.3949,0.7054,0.2946',
    ],
    [
      'cm',
      'takerLongShortRatio',
      'recorded-futures-data-2026/cm__takerBuySellVol.json',
      '1791283800000,11344,13037,0.1317,0.1513',
    ],
    [
      'cm',
      'openInterestHist',
      'recorded-futures-data-2026/cm__openInterestHist.json',
      '1791284100000,2909783.00000000,3377.42432722',
    ],
    [
      'spot',
      'aggTrades',
      'recorded-nautilus/api__v3__aggTrades.json',
      '966492862,60759.60000000,0.00841000,1111480471,1111480471,1634944096633,false,true',
    ],
  ])('%s %s of %s has its cells where they belong', (market, dataset, file, line) => {
    expect(lineOf(market, dataset, file)).toBe(line);
  });

  it('and openInterestHist has its supply where it was sent, which it was not before 2025', () => {
    const routed = {
      market: 'um',
      spec: specOf('um', 'openInterestHist'),
      route: routeOf('um', 'openInterestHist'),
    } as const;
    const rows = rowsFor(routed, 'recorded').map((cells) => rowOf(cells, routed.route));
    const [old, recent] = [true, false].map((isOld) =>
      rows.filter(({ atMs }) => atMs < SUPPLY_FROM === isOld),
    );
    expect(old?.length).toBeGreaterThan(0);
    expect(recent?.length).toBeGreaterThan(0);
    expect(old?.some(({ cells }) => 'CMCCirculatingSupply' in cells)).toBe(false);
    expect(recent?.every(({ cells }) => 'CMCCirculatingSupply' in cells)).toBe(true);
  });
});

describe.skipIf(missing !== undefined)('exchangeInfo', () => {
  const infoOf = (file: string): ExchangeInfo => {
    const content = jsonOf(file);
    return readExchangeInfo(Array.isArray(content) ? (content[0] as { body: unknown }).body : content);
  };
  const countBy = (info: ExchangeInfo, field: 'status' | 'contractType'): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const symbol of info.symbols) counts[symbol[field]] = (counts[symbol[field]] ?? 0) + 1;
    return counts;
  };

  it.each<[string, number, Record<string, number>, Record<string, number>, number]>([
    [
      'recorded-cryptofeed/api__v3__exchangeInfo.json',
      1695,
      { TRADING: 1262, BREAK: 433 },
      { '': 1695 },
      1200,
    ],
    [
      'recorded-cryptofeed/fapi__v1__exchangeInfo.json',
      122,
      { TRADING: 121, PENDING_TRADING: 1 },
      { PERPETUAL: 119, CURRENT_QUARTER: 2, '': 1 },
      2400,
    ],
    [
      'recorded-cryptofeed/dapi__v1__exchangeInfo.json',
      36,
      { TRADING: 36 },
      { PERPETUAL: 18, CURRENT_QUARTER: 9, NEXT_QUARTER: 9 },
      2400,
    ],
    ['recorded-nautilus/api__v3__exchangeInfo.json', 2, { TRADING: 2 }, { '': 2 }, 1200],
    ['recorded-gocryptotrader/api__v3__exchangeInfo.json', 25, { TRADING: 12, BREAK: 13 }, { '': 25 }, 6000],
    ['recorded-gocryptotrader/fapi__v1__exchangeInfo.json', 25, { TRADING: 25 }, { PERPETUAL: 25 }, 2400],
    [
      'recorded-gocryptotrader/dapi__v1__exchangeInfo.json',
      25,
      { TRADING: 24, DELIVERING: 1 },
      { PERPETUAL: 24, 'PERPETUAL DELIVERING': 1 },
      2400,
    ],
  ])('of %s', (file, symbols, statuses, contractTypes, limit) => {
    const info = infoOf(file);
    expect(info.symbols).toHaveLength(symbols);
    expect(new Set(info.symbols.map(({ symbol }) => symbol)).size).toBe(symbols);
    expect(countBy(info, 'status')).toEqual(statuses);
    expect(countBy(info, 'contractType')).toEqual(contractTypes);
    expect(info.weight).toEqual({ limit, windowMs: 60_000 });
  });

  it('has odd ones among its symbols', () => {
    const find = (file: string, name: string): unknown =>
      infoOf(file).symbols.find(({ symbol }) => symbol === name);
    expect(find('recorded-cryptofeed/fapi__v1__exchangeInfo.json', 'BTCSTUSDT')).toEqual({
      symbol: 'BTCSTUSDT',
      status: 'PENDING_TRADING',
      contractType: '',
    });
    expect(find('recorded-gocryptotrader/dapi__v1__exchangeInfo.json', 'GALAUSD_PERP')).toEqual({
      symbol: 'GALAUSD_PERP',
      status: 'DELIVERING',
      contractType: 'PERPETUAL DELIVERING',
    });
  });
});

/** By its name in the file. */
const ERRORS: Readonly<Record<string, ErrorCode>> = {
  'invalid-symbol': 'symbol-unknown',
  'api-key-needed': 'key-required',
  'cm-window-too-long': 'http-refused',
  'history-wall-start': 'before-history',
  'history-wall-end': 'before-history',
  'bad-period': 'http-refused',
  'limit-too-big': 'http-refused',
  'bad-interval': 'http-refused',
  'aggtrades-too-old': 'before-history',
  'bad-contract-type': 'contract-unknown',
  'bad-symbol-status': 'symbol-closed',
  'rate-limited': 'rate-limited',
  banned: 'banned',
  'rate-limited-spot': 'rate-limited',
  'banned-spot': 'banned',
  'restricted-location': 'location-restricted',
};

interface Refused {
  readonly name: string;
  readonly status: number;
  readonly body: string;
}

describe.skipIf(missing !== undefined)('every error body maps to the right typed error', () => {
  const records = missing === undefined ? (jsonOf('errors/errors.json') as Refused[]) : [];
  const URL_ = 'https://fapi.test/fapi/v1/klines';
  const BANNED_UNTIL = 1_746_327_239_762;

  it('and there is one for each name', () => {
    expect(records.map(({ name }) => name).sort()).toEqual(Object.keys(ERRORS).sort());
  });

  it.each(records.map((record) => [record.name, record] as const))('%s', (name, { status, body }) => {
    const said = { status, headers: {}, head: body, receivedAtMs: BANNED_UNTIL - 60_000 };
    const error = statusError(said, URL_, BINANCE_ANSWERS.readRefusal);
    expect(error?.code).toBe(ERRORS[name]);
    expect(error?.retryAfterMs).toBe(name.startsWith('banned') ? 61_000 : undefined);
    expect(error?.retryable).toBe(status === 429 || status === 418);
    // Shuffled keys and white space say the same.
    const turned = JSON.stringify(
      Object.fromEntries(Object.entries(JSON.parse(body) as object).toReversed()),
      null,
      1,
    );
    expect(statusError({ ...said, head: turned }, URL_, BINANCE_ANSWERS.readRefusal)).toMatchObject({
      code: error?.code,
      message: error?.message,
    });
  });

  it('and so do those among the recorded answers', () => {
    const refused = (file: string, status: number): unknown[] =>
      (jsonOf(file) as { body: unknown }[])
        .map(({ body }) => body)
        .filter((body) => !Array.isArray(body) && typeof body === 'object' && body !== null && 'msg' in body)
        .map(
          (body) =>
            statusError(
              { status, headers: {}, head: JSON.stringify(body), receivedAtMs: 0 },
              URL_,
              BINANCE_ANSWERS.readRefusal,
            )?.code,
        );
    expect(refused('recorded-gocryptotrader/dapi__v1__klines.json', 400)).toEqual(['http-refused']);
    expect(refused('recorded-gocryptotrader/fapi__v1__ticker__24hr.json', 400)).toEqual(['symbol-unknown']);
    expect(refused('recorded-gocryptotrader/dapi__v1__historicalTrades.json', 401)).toEqual([
      'key-required',
      'key-required',
    ]);
  });
});

const FUNDING_ZIP = 'archive-crosscheck/BTCUSDT-fundingRate-2026-04.zip';
const KLINES_ZIP = 'archive-crosscheck/BTCUSDT-1h-2026-05-08.zip';

describe.skipIf(restSamplesMissing(FUNDING_ZIP, KLINES_ZIP) !== undefined)('beside the archive', () => {
  const publishedOf = (file: string) => readPublished(firstMember(readFileSync(join(REST_SAMPLES, file))));

  it('the intervals of a month of fundings are those that were published', async () => {
    const { rows } = publishedOf(FUNDING_ZIP);
    expect(rows).toHaveLength(90);
    const { client } = clientOf(({ searchParams }) => {
      const page = rows
        .map(([at, , fundingRate]) => ({ fundingTime: Number(at), fundingRate }))
        .filter(({ fundingTime }) => fundingTime >= Number(searchParams.get('startTime')));
      return { status: 200, body: JSON.stringify(page) };
    });
    const span = { fromMs: Date.UTC(2026, 3, 1), toMs: Date.UTC(2026, 4, 1) };
    const series = { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' } as const;
    const pages = await allPages(seriesPages(client, routeOf('um', 'fundingRate'), series, span));
    const csv = rowsAsCsv(
      pages.flatMap((page) => page.rows),
      { spec: specOf('um', 'fundingRate'), symbol: 'BTCUSDT', microseconds: false },
    );
    expect(csv.toString('utf8').trimEnd().split('\n').slice(1)).toEqual(
      rows.map((cells) => `${cells.join(',')},`),
    );
  });

  it('klines in microseconds equal the published ones', () => {
    const { rows } = publishedOf(KLINES_ZIP);
    expect(rows).toHaveLength(24);
    const answered = rows.map((cells) =>
      cells.map((cell, index) => {
        if (index === 0 || index === 6) return Math.floor(Number(cell) / 1000);
        return index === 8 ? Number(cell) : cell;
      }),
    );
    const csv = rowsAsCsv(
      answered.map((cells) => rowOf(cells, routeOf('spot', 'klines'))),
      { spec: specOf('spot', 'klines'), symbol: 'BTCUSDT', microseconds: true },
    );
    expect(csv.toString('utf8').trimEnd().split('\n').slice(1)).toEqual(rows.map((cells) => cells.join(',')));
  });
});
