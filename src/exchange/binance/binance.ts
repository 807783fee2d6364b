/** Binance: the archive at data.binance.vision, and the REST interfaces of spot and futures. */
import { ZIP } from '../zip/unzip.js';
import { parsePeriod, periodText } from '../../model/calendar.js';
import type { Series, Market } from '../../model/task.js';
import { readFacts, type HaltFacts } from '../facts.js';
import { fileOfKey } from '../keys.js';
import { S3_LISTING } from '../s3-listing.js';
import type { Archive, Sidecar, Exchange } from '../exchange.js';
import { exchangeSpecOf, type ExchangeSpec } from '../exchange-spec.js';
import { BINANCE_ANSWERS } from './answers.js';
import { banKey } from '../../http/throttle/bans.js';
import { isNoAnswer } from '../../model/errors.js';
import { agoText } from '../../model/units.js';
import type { Addresses, RestApi, RestContext } from '../rest-api.js';
import {
  exchangeInfo,
  isPerpetual,
  parseAssets,
  parseHeldInfo,
  weightBucket,
  type ExchangeInfo,
} from './exchange-info.js';
import { RestClient } from './rest-client.js';
import { seriesPages } from './series-pages.js';

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
const stem = (series: Series): string => `${series.symbol}-${series.interval ?? series.dataset}-`;

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

// REST for one run: hosts, limits, the pages of a series, and the hosts that are banned together.

function binanceRest({ spot, spotPublic }: ExchangeSpec['hosts']): RestApi {
  return {
    urls: ({ fapiUrl, dapiUrl, spotUrl }) => ({
      'fapi-url': fapiUrl,
      'dapi-url': dapiUrl,
      'spot-url': spotUrl,
    }),
    places: restPlaces,
    bannedWith,
    isPerpetual,
    assetsIn: parseAssets,
    open: (session) => {
      const { options, fetch, throttle, observer, signal } = session;
      const client = new RestClient({
        fetch,
        urls: { fapi: options.fapiUrl, dapi: options.dapiUrl, spot: options.spotUrl },
        // A custom address of spot has no replacement.
        otherSpotUrl: options.spotUrl === spot ? spotPublic : undefined,
        priority: options.priority,
        signal,
        warn: (message) => observer.warn(message),
      });
      return {
        pages: (route, series, span) => seriesPages(client, route, series, span),
        symbols: async (market) => {
          const { symbols, weight } = await infoOf(session, client, market);
          if (weight !== undefined)
            throttle.setBudget(weightBucket(market), { permits: weight.limit, windowMs: weight.windowMs });
          return symbols;
        },
      };
    },
  };
}

/** Always sends a request. If the host does not answer, uses the cached answer and prints a warning. */
async function infoOf(
  { options, copies, nowMs, observer }: RestContext,
  client: RestClient,
  market: Market,
): Promise<ExchangeInfo> {
  const url = market === 'spot' ? options.spotUrl : options[market === 'cm' ? 'dapiUrl' : 'fapiUrl'];
  const name = `exchangeInfo ${url} ${market}`;
  const copy = await copies.read(name, parseHeldInfo);
  try {
    const info = await exchangeInfo(client, market);
    await copies.keep(name, info);
    return info;
  } catch (error) {
    if (copy === undefined || !isNoAnswer(error)) throw error;
    observer.warn(
      `exchangeInfo of ${new URL(url).host} is not available (${error.message}): its copy of ${agoText(copy.atMs, nowMs)} is used; later listings and delistings of symbols are not known`,
    );
    return copy.value;
  }
}

const FUTURES: readonly string[] = ['futures', 'futuresData', 'funding'];

/** The places of a market's REST, one per bucket. Bans are recorded by place. */
function restPlaces(options: Addresses, market: Market): string[] {
  if (market === 'spot') return [banKey('spot', options.spotUrl)];
  const url = market === 'cm' ? options.dapiUrl : options.fapiUrl;
  return FUTURES.map((bucket) => banKey(bucket, url));
}

/** The hosts of USD-margined and coin-margined futures share their limits, so a ban of one applies to both. */
function bannedWith(options: Addresses, url: string): string[] {
  const futures = [options.fapiUrl, options.dapiUrl];
  const isOf = (base: string): boolean => new URL(base).host === new URL(url).host;
  return futures.some(isOf) ? [...new Set([url, ...futures])] : [url];
}
