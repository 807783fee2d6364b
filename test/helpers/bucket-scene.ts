/** An archive with ten days of four symbols, and lakes in a bucket of a server in this process. */
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { startArchive } from './archive.js';
import type { TestArchive } from './archive.js';
import { cryptodl, FAST } from './cli.js';
import type { CliResult } from './cli.js';
import { scratchFolder } from './folders.js';
import { filesBelow, readParquet } from './lake.js';
import { lakeInBucket } from './lake-kinds.js';
import type { TestLake } from './lake-kinds.js';
import { hourlyBars, publish } from './published.js';
import { S3Server } from './s3-server.js';
import type { S3Record } from './s3-server.js';

export const SYMBOLS = ['BTCUSDT', 'ETHUSDT', 'SOLUSDT', 'XRPUSDT'];
export const FOLDER = 'binance/um/klines/interval=1h';
export const MONTH = `${FOLDER}/symbol=BTCUSDT/2026-11.parquet`;
export const MANIFEST = `_manifests/${FOLDER}/symbol=BTCUSDT.jsonl`;

export const dayOf = (day: number): string => `2026-11-${String(day).padStart(2, '0')}`;

export const isPut = ({ method, key }: S3Record, path: string): boolean =>
  method === 'PUT' && key.endsWith(path);

export interface BucketScene {
  readonly scratch: string;
  readonly server: S3Server;
  /** Started before the first test. */
  readonly archive: () => TestArchive;
  /** Begins a test: an empty lake, a folder for --temp-dir, and a server without faults. */
  readonly begin: () => { readonly lake: TestLake; readonly temp: string };
  readonly newLake: () => TestLake;
  /** The words of a download of days of BTCUSDT. */
  readonly args: (from: number, to: number, flags?: readonly string[], out?: string) => string[];
  readonly vision: (from: number, to: number, flags?: readonly string[], out?: string) => Promise<CliResult>;
  /** The days of BTCUSDT in the lake, each as often as it is there. */
  readonly days: () => Promise<number[]>;
  readonly isSound: () => Promise<boolean>;
  readonly mirrors: () => string[];
}

/** Call in a `describe`. */
export function bucketScene(): BucketScene {
  const scratch = scratchFolder();
  const server = new S3Server();
  let started: TestArchive | undefined;
  let lakes = 0;
  let lake: TestLake | undefined;
  let temp = '';

  beforeAll(async () => {
    const folder = join(scratch, 'archive');
    mkdirSync(folder);
    for (const symbol of SYMBOLS)
      for (let day = 1; day <= 10; day += 1)
        publish(
          folder,
          `data/futures/um/daily/klines/${symbol}/1h/${symbol}-1h-${dayOf(day)}.zip`,
          // The price of each row is the number of its day.
          hourlyBars([dayOf(day)], day),
        );
    started = await startArchive(folder);
    await server.listen();
  });
  afterAll(async () => {
    await started?.close();
    await server.close();
  });

  const archive = (): TestArchive => {
    if (started === undefined) throw new Error('the archive is not started');
    return started;
  };
  const newLake = (): TestLake => {
    lakes += 1;
    return lakeInBucket(server, `lakes/${lakes}`, scratch);
  };
  const current = (): TestLake => (lake ??= newLake());
  const args = (from: number, to: number, flags: readonly string[] = [], out = current().out): string[] => {
    const what = ['--symbols', 'BTCUSDT', '--interval', '1h', '--from', dayOf(from), '--to', dayOf(to)];
    const places = ['--archive-url', archive().url, '--out', out, '--temp-dir', temp, '--json'];
    return ['vision', ...what, ...places, ...FAST, ...flags];
  };
  return {
    scratch,
    server,
    archive,
    begin: () => {
      temp = mkdtempSync(join(scratch, 'temp-'));
      lake = newLake();
      server.fault = undefined;
      server.requests.length = 0;
      return { lake, temp };
    },
    newLake,
    args,
    vision: (from, to, flags, out) => cryptodl(args(from, to, flags, out), { env: current().environment }),
    days: async () => {
      const folder = join(current().content(), FOLDER, 'symbol=BTCUSDT');
      const rows = await Promise.all(filesBelow(folder).map((file) => readParquet(join(folder, file))));
      return rows
        .flat()
        .filter((row) => (row['open_time'] as Date).getUTCHours() === 0)
        .map((row) => Number(row['open']))
        .sort((one, other) => one - other);
    },
    isSound: async () => {
      const { out, environment: env } = current();
      return (await cryptodl(['verify', '--deep', '--out', out], { env })).code === 0;
    },
    mirrors: () => readdirSync(temp).filter((name) => name.startsWith('cryptodl-mirror-')),
  };
}
