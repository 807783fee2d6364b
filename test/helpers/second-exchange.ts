/**
 * Tidal, an invented exchange that has nothing in common with Binance: gzip objects without sidecars, an HTML index per folder,
 * days that begin at 16:00 UTC (2024-03-01 is the day from 2024-02-29T16:00Z), one market, other datasets and columns, no REST.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import type { LoadExchange } from '../../src/run/verb/verb.js';
import type { ColumnSpec, HaltFacts } from '../../src/exchange/facts.js';
import type { Archive, ListedObject, ListingFormat, Packing, Exchange } from '../../src/exchange/exchange.js';
import type { RestApi } from '../../src/exchange/rest-api.js';
import type { DatasetSpec } from '../../src/exchange/exchange-spec.js';
import { built } from './built.js';

const DAY_START_HOURS = -8;
const HOUR_MS = 3_600_000;
const ENDING = '.csv.gz';

/** The key of a day of hourly candles. */
export function candlesKey(symbol: string, day: string): string {
  return `history/swap/candles/${symbol}/1h/${symbol}_1h_${day}${ENDING}`;
}

/** The rows of a day of hourly candles, 24 from its beginning at 16:00 UTC of the date before; `hours` leaves some out. */
export function candles(
  symbol: string,
  day: string,
  hours = Array.from({ length: 24 }, (_, hour) => hour),
): string {
  const start = Date.parse(`${day}T00:00:00Z`) + DAY_START_HOURS * HOUR_MS;
  const rows = hours.map((hour) => `${symbol},${start + hour * HOUR_MS},${100 + hour},${hour}.5`);
  return ['instrument,opened,price,amount', ...rows, ''].join('\n');
}

/** The archive of the exchange over HTTP: what it publishes, and what was asked for. */
export class SecondArchive {
  readonly objects = new Map<string, Buffer>();
  readonly requests: string[] = [];
  /** Whether requests of objects get status 503. */
  isDown = false;
  readonly #server = createServer((request, response) => {
    this.#answer(request, response);
  });

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  publish(key: string, rows: string): void {
    this.objects.set(key, gzipSync(rows));
  }

  /** The objects that were asked for since the last call, by file name. */
  takeRequests(): string[] {
    const asked = this.requests.splice(0).filter((path) => path.endsWith(ENDING));
    return asked.map((path) => path.slice(path.lastIndexOf('/') + 1)).sort();
  }

  #answer({ url = '' }: IncomingMessage, response: ServerResponse): void {
    this.requests.push(url);
    if (this.isDown && url.endsWith(ENDING)) {
      response.writeHead(503).end();
      return;
    }
    const key = decodeURIComponent(url.slice(1));
    const body = url.endsWith('/') ? Buffer.from(this.#index(key)) : this.objects.get(key);
    if (body === undefined) {
      response.writeHead(404).end();
      return;
    }
    const etag = `"${createHash('sha1').update(body).digest('hex')}"`;
    response.writeHead(200, { 'content-length': body.length, etag }).end(body);
  }

  /** `<a href="name">name</a> bytes` for each entry of a folder. */
  #index(prefix: string): string {
    const lines = new Set<string>();
    for (const [key, { length }] of this.objects) {
      if (!key.startsWith(prefix)) continue;
      const [name = '', ...deeper] = key.slice(prefix.length).split('/');
      const entry = deeper.length > 0 ? `${name}/` : name;
      lines.add(`<a href="${entry}">${entry}</a> ${deeper.length > 0 ? '-' : length}`);
    }
    return `<html><body>\n${[...lines].join('\n')}\n</body></html>\n`;
  }
}

/** Loads the exchange out of the built program, whose errors it throws. The origin is the archive unless another is given. */
export function secondExchange(
  { url }: SecondArchive,
  { origin = url, halts = [] }: { readonly origin?: string; readonly halts?: readonly HaltFacts[] } = {},
): LoadExchange {
  return async () => {
    const exchange = sourceOf(url, await builtProgram());
    return { ...exchange, hosts: { ...exchange.hosts, origin }, halts: () => halts };
  };
}

type Program = typeof import('../../src/model/errors.js') & typeof import('../../src/model/calendar.js');

async function builtProgram(): Promise<Program> {
  const load = async (file: string): Promise<unknown> => import(built(`model/${file}.js`));
  return { ...((await load('errors')) as Program), ...((await load('calendar')) as Program) };
}

function sourceOf(url: string, program: Program): Exchange {
  return {
    name: 'tidal',
    firstDay: '2023-01-01',
    defaultMarket: 'swap',
    dayStartMs: DAY_START_HOURS * HOUR_MS,
    hosts: { archive: url, origin: url, listing: url },
    buckets: {
      archive: { permitsPerSecond: 5000, burst: 5000 },
      listing: { permitsPerSecond: 500, burst: 500 },
    },
    markets: { swap: { path: 'swap', title: 'swaps', datasets: { candles: CANDLES } } },
    archive: archiveOf(program),
    answers: { readRefusal: () => ({}), usedPermits: () => 0 },
    rest: NO_REST,
    halts: () => [],
    parseAssets: () => undefined,
  };
}

const column = (name: string, type: ColumnSpec['type']): ColumnSpec => ({
  name,
  type,
  doc: name,
  nullable: false,
  restOnly: false,
});

const CANDLES: DatasetSpec = {
  name: 'candles',
  title: 'candles',
  aliases: [],
  cadences: ['daily'],
  spans: {},
  removed: false,
  header: 'always',
  intervals: { daily: ['1h'], monthly: [] },
  dayStartMs: DAY_START_HOURS * HOUR_MS,
  edgeSeconds: 30,
  sort: ['opened'],
  hasKey: true,
  partition: 'month',
  dayPartitionIntervals: [],
  columns: [
    column('instrument', 'symbol'),
    column('opened', 'time'),
    column('price', 'number'),
    column('amount', 'number'),
  ],
  notes: [],
};

function archiveOf(program: Program): Archive {
  const datasetPrefix: Archive['datasetPrefix'] = (market, _, dataset) => `history/${market}/${dataset}/`;
  const seriesPrefix: Archive['seriesPrefix'] = ({ market, dataset, symbol, interval }, cadence) =>
    `${datasetPrefix(market, cadence, dataset)}${symbol}/${interval ?? 'all'}/`;
  const stem: Archive['markerBefore'] = (series, period) =>
    `${seriesPrefix(series, period.cadence)}${series.symbol}_${series.interval ?? 'all'}_${program.periodText(period)}`;
  return {
    datasetPrefix,
    seriesPrefix,
    markerBefore: stem,
    objectKey: (series, period) => stem(series, period) + ENDING,
    periodOf: (series, cadence) => {
      const start = `${seriesPrefix(series, cadence)}${series.symbol}_${series.interval ?? 'all'}_`;
      return (key) =>
        cadence === 'daily' && key.startsWith(start) && key.endsWith(ENDING)
          ? program.parsePeriod('daily', key.slice(start.length, -ENDING.length))
          : undefined;
    },
    topFolder: 'history',
    ending: ENDING,
    listing: htmlIndex(program),
    known: { listing: '/history/', key: candlesKey('BTC-USDT-SWAP', '2024-03-01') },
    packing: gzipOf(program),
    sidecar: undefined,
  };
}

function htmlIndex({ CryptodlError }: Program): ListingFormat {
  return {
    startsAnywhere: false,
    address: ({ prefix }) => `/${prefix}`,
    parse: (body, address) => {
      const page = body.toString('utf8');
      if (!page.endsWith('</html>\n')) throw new CryptodlError('listing-malformed', 'the index is cut');
      const prefix = address.slice(1);
      const entries = [...page.matchAll(/<a href="([^"]+)">[^<]*<\/a> (\d+|-)/g)];
      const names = entries.map(([, name = '', size = '']) => ({ key: prefix + name, size }));
      names.sort((a, b) => (a.key < b.key ? -1 : 1));
      return {
        objects: names
          .filter(({ size }) => size !== '-')
          .map(({ key, size }): ListedObject => ({ key, bytes: Number(size), etag: '', lastModified: '' })),
        prefixes: names.filter(({ size }) => size === '-').map(({ key }) => key),
        truncated: false,
      };
    },
  };
}

function gzipOf({ CryptodlError }: Program): Packing {
  return {
    name: 'gzip',
    isStart: (head) => head[0] === 0x1f && head[1] === 0x8b,
    // Gzip has no end record: only unpacking shows a cut.
    hasEnd: () => true,
    tailBytes: 0,
    rowsName: (key) => key.slice(key.lastIndexOf('/') + 1, -'.gz'.length),
    unpack: async (body, rowsName, { maxBytes, memoryBytes, spoolPath }) => {
      const packed = body.kind === 'file' ? createReadStream(body.path) : Readable.from([body.bytes]);
      const chunks: Buffer[] = [];
      let size = 0;
      try {
        for await (const chunk of packed.pipe(createGunzip()) as AsyncIterable<Buffer>) {
          size += chunk.length;
          if (size > maxBytes) throw new CryptodlError('zip-bomb', `${rowsName} is too large`);
          chunks.push(chunk);
        }
      } catch (error) {
        if (error instanceof CryptodlError) throw error;
        throw new CryptodlError('zip-broken', `${rowsName}: ${(error as Error).message}`, { cause: error });
      }
      const bytes = Buffer.concat(chunks);
      if (size <= memoryBytes) return { kind: 'memory', bytes };
      await writeFile(spoolPath, bytes);
      return { kind: 'file', path: spoolPath, size };
    },
  };
}

const NO_REST: RestApi = {
  urls: () => ({}),
  places: () => [],
  bannedWith: (_, url) => [url],
  isPerpetual: () => false,
  open: () => ({
    symbols: () => Promise.resolve([]),
    pages: () => {
      throw new Error('the exchange has no REST');
    },
  }),
};
