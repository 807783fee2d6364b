/** Binance: the archive at data.binance.vision, and the REST interfaces of spot and futures. */
import { ZIP } from '../zip/unzip.js';
import { parsePeriod, periodText } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import { readFacts } from '../facts.js';
import type { HaltFacts } from '../facts.js';
import { fileOfKey } from '../keys.js';
import { S3_LISTING } from '../s3-listing.js';
import type { Archive, Sidecar, Exchange } from '../exchange.js';
import { exchangeSpecOf } from '../exchange-spec.js';
import type { ExchangeSpec } from '../exchange-spec.js';
import { binanceRest } from './rest-session.js';
import type { AnswerRules } from '../../http/exchange-hosts.js';
import type { Refusal } from '../../http/transport/error-map.js';
import type { ErrorCode } from '../../model/errors.js';
import { DURATION_MS } from '../../model/units.js';
import { fieldsOf, parseJson } from '../../text/json.js';

/** Throws if the files of config/ contradict each other, which is a bug of the package. */
export function loadBinance(): Exchange {
  const facts = readFacts('binance.json');
  const exchange = exchangeSpecOf(facts, readFacts('binance-datasets.json'));
  let halts: readonly HaltFacts[] | undefined;
  return {
    ...exchange,
    archive: binanceArchive(exchange.markets),
    answers: BINANCE_ANSWERS,
    rest: binanceRest(facts.hosts),
    halts: () => (halts ??= readFacts('halts.json')),
  };
}

// The keys of Binance Vision, `data/<market>/<cadence>/<dataset>/<SYMBOL>/[<interval>/]<file>`, and its sidecars.

const ENDING = '.zip';

function binanceArchive(markets: ExchangeSpec['markets']): Archive {
  const datasetPrefix: Archive['datasetPrefix'] = (market, cadence, dataset) =>
    `data/${markets[market]?.path ?? market}/${cadence}/${dataset}/`;
  const seriesPrefix: Archive['seriesPrefix'] = (series, cadence) => {
    const interval = series.interval === undefined ? '' : `${series.interval}/`;
    return `${datasetPrefix(series.market, cadence, series.dataset)}${series.symbol}/${interval}`;
  };
  const withoutEnding: Archive['markerBefore'] = (series, period) =>
    seriesPrefix(series, period.cadence) + stem(series) + periodText(period);
  return {
    datasetPrefix,
    seriesPrefix,
    objectKey: (series, period) => withoutEnding(series, period) + ENDING,
    periodOf: (series, cadence) => {
      const start = seriesPrefix(series, cadence) + stem(series);
      // Stray keys have no period: `part-00000-….zip`, and months without a leading zero.
      return (key) =>
        key.startsWith(start) && key.endsWith(ENDING)
          ? parsePeriod(cadence, key.slice(start.length, -ENDING.length))
          : undefined;
    },
    markerBefore: withoutEnding,
    topFolder: 'data',
    ending: ENDING,
    listing: S3_LISTING,
    known: {
      listing: '/?prefix=data%2F&max-keys=10',
      key: 'data/spot/daily/klines/BTCUSDT/1d/BTCUSDT-1d-2021-01-01.zip',
    },
    packing: ZIP,
    sidecar: SIDECAR,
  };
}

/** File name without the period: kline files name their interval, the others their dataset. */
function stem(series: Series): string {
  return `${series.symbol}-${series.interval ?? series.dataset}-`;
}

/** In the text format of `sha256sum`: `<64 hex>  <file name>`, with or without a final newline. */
const SIDECAR: Sidecar = {
  suffix: '.CHECKSUM',
  textOf: (key, sha256) => `${sha256}  ${fileOfKey(key)}\n`,
  digestIn: (text, key) => {
    // Trims the end first: an expression that also matches the spaces at the end would need seconds for 64 KiB of them.
    const match = /^([0-9a-f]{64})\s+\*?(\S.*)$/i.exec(text.trimEnd());
    return match?.[2] === fileOfKey(key) ? match[1]?.toLowerCase() : undefined;
  },
};

// Reads the refusals of Binance hosts, and the headers that report used permits.

export const BINANCE_ANSWERS: AnswerRules = { readRefusal, usedPermits };

/** Binance error numbers that have the same meaning on every host. With another number, a 400 means a wrong request. */
const BY_NUMBER: Readonly<Record<number, ErrorCode>> = {
  [-1000]: 'http-server-error',
  [-1001]: 'http-server-error',
  [-1006]: 'http-server-error',
  [-1007]: 'http-server-error',
  [-1008]: 'http-server-error',
  [-1016]: 'http-server-error',
  [-1121]: 'symbol-unknown',
  [-4087]: 'symbol-unknown',
  [-4144]: 'symbol-unknown',
  [-4104]: 'contract-unknown',
  [-1122]: 'symbol-closed',
  [-4141]: 'symbol-closed',
  [-4166]: 'before-history',
  [-2014]: 'key-required',
  [-2015]: 'key-required',
};

const INVALID_PARAMETER = -1130;

/** The duration of a ban (418) for which the answer gives no end, in milliseconds. */
const BAN_MS = 120_000;

/**
 * REST refuses with a body like `{"code":-1121,"msg":"Invalid symbol."}`; the order of the keys varies. The text of a ban contains its
 * end: `IP banned until 1734000000000`. Any other body gives no information.
 */
function readRefusal({ status, head }: { readonly status: number; readonly head: string }): Refusal {
  const until = /banned until (\d{13})/i.exec(head)?.[1];
  return {
    ...inBody(head),
    ...(status === 418 ? { code: 'banned', leastMs: BAN_MS } : {}),
    ...(until === undefined ? {} : { until: Number(until) }),
  };
}

function inBody(head: string): Pick<Refusal, 'code' | 'message'> {
  const { code: number, msg } = fieldsOf(parseJson(head));
  if (typeof number !== 'number' || typeof msg !== 'string') return {};
  // A time before the kept history. With another parameter, the same number means a wrong request.
  const isBeforeHistory = number === INVALID_PARAMETER && /'(?:start|end)Time'/.test(msg);
  const code = isBeforeHistory ? 'before-history' : BY_NUMBER[number];
  return { message: `${number} ${msg}`, ...(code === undefined ? {} : { code }) };
}

/**
 * Reads `X-MBX-USED-WEIGHT-1M: 27`. Only the header with the length of the window counts, because the weight of a minute and the
 * requests of five minutes are different budgets.
 */
function usedPermits(headers: Readonly<Record<string, string>>, windowMs: number): number {
  const used = Object.entries(headers).flatMap(([name, value]) => {
    const [, count, unit = ''] = /^x-mbx-used-weight-(\d+)([smhd])$/.exec(name) ?? [];
    return Number(count) * (DURATION_MS[unit] ?? 0) === windowMs ? [Number(value)] : [];
  });
  return Math.max(0, ...used.filter((value) => Number.isFinite(value)));
}
