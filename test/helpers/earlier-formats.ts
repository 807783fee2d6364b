/** The commands that made test/fixtures, and the archive and REST venue against which they ran. */
import { existsSync, mkdirSync, readFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeZip } from '../../scripts/make-zip.js';
import { makeCsv } from '../../scripts/synthetic-archive.js';
import { startArchive } from './archive.js';
import type { TestArchive } from './archive.js';
import { manifestOf } from './lake.js';
import { memberOf, publishZip } from './published.js';
import { apiError, serverError } from './rest-venue-answers.js';
import { serveVenue } from './rest-venue-server.js';
import { RestVenue } from './rest-venue.js';

type Environment = Readonly<Record<string, string>>;

interface Step {
  readonly argv: string;
  /** The day of November 2026 on which the command runs, at noon. */
  readonly day: number;
  /** The file in `logs` that keeps the events of `--json`. */
  readonly log?: string;
  /** A change of the archive or of the lake before the command. */
  readonly before?: (scene: EarlierScene, cwd: string) => void;
}

const JOBS = `defaults: { retries: 0, out: lakes/jobs }
jobs:
  bars: { verb: vision, symbols: 'BTCUSDT,ETHUSDT', interval: 1d, days: 2 }
  interest: { verb: metrics, dataset: openInterestHist, interval: 12h, symbols: 'BTCUSDT,ETHUSDT', days: 2 }
`;

const STEPS: readonly Step[] = [
  {
    day: 6,
    argv: 'vision --symbols BTCUSDT,ETHUSDT --interval 1d --from 2026-10-01 --to 2026-11-05 --out lakes/parquet --json',
    log: 'bars.jsonl',
  },
  {
    day: 7,
    argv: 'vision --days 1 --retries 0 --out lakes/parquet --failures reports/vision.jsonl --json',
    log: 'failing-bars.jsonl',
    before: (scene) => {
      publishBars(scene, 'BTCUSDT', 4, { seed: 2 });
      publishBars(scene, 'ETHUSDT', 5, { seed: 2, hasStaleSidecar: true });
      publishBars(scene, 'BTCUSDT', 6);
      publishBars(scene, 'ETHUSDT', 6, { isDamaged: true });
      scene.refuses = (key) => key.includes(barsKey('BTCUSDT', 6));
    },
  },
  {
    day: 7,
    argv: 'metrics --dataset fundingRate,openInterestHist --interval 12h --symbols BTCUSDT,ETHUSDT --days 2 --include-today --retries 0 --out lakes/metrics --failures reports/metrics.jsonl --json',
    log: 'failing-metrics.jsonl',
  },
  {
    day: 7,
    argv: 'run jobs.yaml --failures reports/jobs.jsonl --json',
    log: 'jobs.jsonl',
    before: (_scene, cwd) => {
      writeFileSync(join(cwd, 'jobs.yaml'), JOBS);
    },
  },
  {
    day: 7,
    argv: 'vision --market spot --dataset aggTrades --symbols SOLUSDT --days 3 --format csv --timestamps iso --partition day --out lakes/csv',
  },
  {
    day: 7,
    argv: 'verify --out lakes/csv --fix',
    before: (_scene, cwd) => {
      const series = join(cwd, 'lakes/csv/binance/spot/aggTrades/symbol=SOLUSDT');
      truncateSync(join(series, '2026-11-05.csv'), 100);
      const beside = join(series, '_manifest.jsonl');
      // The present program keeps it elsewhere.
      const manifest = existsSync(beside) ? beside : manifestOf(series);
      // The file of the first line becomes an unlisted one.
      writeFileSync(manifest, readFileSync(manifest, 'utf8').replace(/.*\n/, ''));
    },
  },
  { day: 6, argv: 'vision --symbols BTCUSDT --interval 1d --days 3 --format zip --out lakes/zip' },
  {
    day: 7,
    argv: 'vision --symbols BTCUSDT --interval 1d --days 2 --fill rest --out lakes/fill',
    before: (scene) => {
      scene.refuses = () => true;
    },
  },
];

export function barsKey(symbol: string, day: number): string {
  return `data/futures/um/daily/klines/${symbol}/1d/${symbol}-1d-${dayText(day)}.zip`;
}

/** The REST venue refuses some requests of ETHUSDT until `repair`. */
export interface EarlierScene {
  readonly archive: TestArchive;
  readonly venue: RestVenue;
  readonly folder: string;
  /** Epoch milliseconds: what the venue and the listing say. */
  readonly time: number;
  /** The archive answers 503 to these paths. */
  refuses: (path: string) => boolean;
  /** From now on everything is as it should be, and day 7 of November 2026 is published. */
  repair(): void;
  /** Sets the clock of the venue to noon of a day of November 2026; returns the options for a program of that time. */
  setDay(day: number): Environment;
  close(): Promise<void>;
}

export async function earlierScene(folder: string): Promise<EarlierScene> {
  let now = Date.parse(`${dayText(6)}T09:00:00Z`);
  let isSound = false;
  const venue = new RestVenue({
    now: () => now,
    symbols: ['BTCUSDT', 'ETHUSDT'].map((symbol) => ({ symbol, host: 'fapi' })),
    disturb: ({ path, query }) => {
      if (isSound || query.get('symbol') !== 'ETHUSDT') return undefined;
      return path.includes('fundingRate') ? serverError(503) : apiError(-1121, 'Invalid symbol.');
    },
  });
  const archive = await startArchive(folder);
  const served = await serveVenue(venue);
  const scene: EarlierScene = {
    archive,
    venue,
    folder,
    get time() {
      return now;
    },
    refuses: () => false,
    repair: () => {
      isSound = true;
      scene.setDay(8);
      scene.refuses = () => false;
      publishBars(scene, 'ETHUSDT', 5, { seed: 2 });
      publishBars(scene, 'ETHUSDT', 6);
      for (const symbol of ['BTCUSDT', 'ETHUSDT']) publishBars(scene, symbol, 7);
    },
    setDay: (day) => {
      now = Date.parse(`${dayText(day)}T12:00:00Z`);
      return {
        CRYPTODL_ARCHIVE_URL: archive.url,
        CRYPTODL_FAPI_URL: served.urlOf('fapi'),
        CRYPTODL_NOW: new Date(now).toISOString(),
        CRYPTODL_RETRY_DELAY: '1ms',
        CRYPTODL_BREAKER_OPEN: '50ms',
        CRYPTODL_PROGRESS: 'none',
      };
    },
    close: async () => {
      await Promise.all([archive.close(), served.close()]);
    },
  };
  archive.fault = (path, _request, response) => {
    if (!scene.refuses(path)) return false;
    response.writeHead(503).end();
    return true;
  };
  publishHistory(scene);
  return scene;
}

/** Runs all steps in a folder. `start` starts the program and returns its standard output, which is kept in `logs`. */
export async function runSteps(
  scene: EarlierScene,
  cwd: string,
  start: (argv: readonly string[], env: Environment) => Promise<string>,
): Promise<void> {
  mkdirSync(join(cwd, 'logs'), { recursive: true });
  for (const { argv, day, log, before } of STEPS) {
    const env = scene.setDay(day);
    before?.(scene, cwd);
    const text = await start(argv.split(' '), env);
    if (log !== undefined) writeFileSync(join(cwd, 'logs', log), text);
  }
}

/** BTCUSDT lacks the 2nd of November. */
function publishHistory(scene: EarlierScene): void {
  for (const symbol of ['BTCUSDT', 'ETHUSDT']) {
    const key = `data/futures/um/monthly/klines/${symbol}/1d/${symbol}-1d-2026-10.zip`;
    publishStored(scene, key, makeCsv({ ...BARS, symbol, period: '2026-10' }).csv);
    for (let day = 1; day <= 5; day += 1)
      if (day !== 2 || symbol !== 'BTCUSDT') publishBars(scene, symbol, day);
  }
  for (let day = 4; day <= 7; day += 1) {
    const period = dayText(day);
    const key = `data/spot/daily/aggTrades/SOLUSDT/SOLUSDT-aggTrades-${period}.zip`;
    const spec = { market: 'spot', dataset: 'aggTrades', symbol: 'SOLUSDT', period, rowsPerDay: 10 } as const;
    publishStored(scene, key, makeCsv(spec).csv);
  }
}

const BARS = { market: 'um', dataset: 'klines', interval: '1d' } as const;

interface BarsOptions {
  readonly seed?: number;
  readonly hasStaleSidecar?: boolean;
  readonly isDamaged?: boolean;
}

function publishBars(scene: EarlierScene, symbol: string, day: number, options: BarsOptions = {}): void {
  const { seed = 1, ...faults } = options;
  const period = dayText(day);
  const { csv } = makeCsv({ ...BARS, symbol, period, seed });
  publishStored(scene, barsKey(symbol, day), csv, faults);
}

/** Without compression, so that the bytes do not depend on the version of zlib. */
function publishStored(
  { folder, time }: EarlierScene,
  key: string,
  csv: string,
  { hasStaleSidecar = false, isDamaged = false }: Omit<BarsOptions, 'seed'> = {},
): void {
  const zip = makeZip([{ name: memberOf(key), data: csv, method: 0 }]);
  if (isDamaged) zip.fill(0, zip.length - 22, zip.length - 18);
  publishZip(folder, key, zip, (digest, name) => `${hasStaleSidecar ? '0'.repeat(64) : digest}  ${name}\n`);
  // The listing tells these times, and the manifest keeps them.
  const at = new Date(time);
  for (const ending of ['', '.CHECKSUM']) utimesSync(join(folder, key + ending), at, at);
}

function dayText(day: number): string {
  return `2026-11-${String(day).padStart(2, '0')}`;
}
