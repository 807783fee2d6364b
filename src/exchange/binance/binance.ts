/** Binance: the archive at data.binance.vision, and the REST interfaces of spot and futures. */
import { ZIP } from '../zip/unzip.js';
import { parsePeriod, periodText } from '../../model/calendar.js';
import type { Series } from '../../model/task.js';
import { readFacts, type HaltFacts } from '../facts.js';
import { fileOfKey } from '../keys.js';
import { S3_LISTING } from '../s3-listing.js';
import type { Archive, Sidecar, Exchange } from '../exchange.js';
import { exchangeSpecOf } from '../exchange-spec-of.js';
import type { ExchangeSpec } from '../exchange-spec.js';
import { binanceRest } from './rest.js';
import { BINANCE_ANSWERS } from './answers.js';

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
