/** What runs put into a lake in a bucket, and what they remove from it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Order } from '../../src/lake/order.js';
import { bucketScene, dayOf, FOLDER, isPut, MANIFEST, MONTH } from '../helpers/bucket-scene.js';
import { cryptodl, cryptodlProcess, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import type { TestLake } from '../helpers/lake-kinds.js';
import { hourlyBars, publish } from '../helpers/published.js';
import type { S3Record } from '../helpers/s3-server.js';

const MIB = 1024 * 1024;
const NOW = `${dayOf(10)}T12:00:00Z`;

describe('a run on a lake in a bucket', () => {
  const scene = bucketScene();
  const { args, scratch, server, archive, vision, days, isSound, mirrors } = scene;
  let lake: TestLake;
  let temp: string;
  beforeEach(() => {
    ({ lake, temp } = scene.begin());
    archive().fault = undefined;
  });

  const keys = (part: string): string[] =>
    [...server.objects.keys()].filter(
      (key) => lake.out.endsWith(key.split('/', 2).join('/')) && key.includes(part),
    );
  const removals = (): string[] =>
    server.requests.filter(({ method }) => method === 'DELETE').map(({ key }) => key);

  /** Removes files of the mirror, as programs do that clean up folders for temporary files. */
  function cleanUp(part: string): number {
    const files = filesBelow(temp).filter(
      (path) => mirrors().some((name) => path.startsWith(name)) && path.includes(part),
    );
    for (const path of files) rmSync(join(temp, path));
    return files.length;
  }

  /** The command has said why it ended, and the bucket has all that it had. */
  function keptAll({ stderr }: CliResult, before: ReadonlyMap<string, { readonly bytes: Buffer }>): void {
    const messages = (stderr.match(/^cryptodl: .*$/gm) ?? []).map((text) => text.replace(/ from .*/, ''));
    expect(new Set(messages)).toEqual(
      new Set(['cryptodl: another program has removed files of the mirror of the lake']),
    );
    expect(stderr).toContain('choose another --temp-dir');
    expect(removals()).toEqual([]);
    // A manifest may have got lines.
    const isKept = ([key, { bytes }]: [string, { readonly bytes: Buffer }]): boolean =>
      server.objects.get(key)?.bytes.subarray(0, bytes.length).equals(bytes) === true;
    expect([...before].filter((each) => !isKept(each)).map(([key]) => key)).toEqual([]);
  }

  it('leaves the start of a run without an end, which check and runs read', async () => {
    expect((await vision(1, 3)).code).toBe(0);
    const unreachable = ['--archive-url', 'http://127.0.0.1:1', '--retries', '0', '--max-wait', '1s'];
    const words = args(2, 3, unreachable).filter((word) => word !== archive().url);
    words.splice(words.indexOf('--archive-url'), 1);
    const { environment: env } = lake;
    expect((await cryptodl(words, { env })).code).not.toBe(0);
    const place = ['--out', lake.out];
    const checked = await cryptodl(['check', '--json', '--now', NOW, ...place], { env });
    const [verdict] = checked.stdout.split('\n');
    expect(JSON.parse(verdict ?? '')).toMatchObject({ verdict: 'complete', lastRun: { fate: 'failed' } });
    expect((await cryptodl(['runs', ...place], { env })).stdout).toContain('could not begin');
  });

  it.each([
    ['before the run', false],
    ['while the run puts its own', true],
  ])('replaces a zip that another run has left %s without a line of the manifest', async (_, isLate) => {
    const key = `data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-${dayOf(1)}.zip`;
    const name = `${lake.out.slice('s3://'.length)}/${key}`.replace(/^[^/]*\//, '');
    const leave = () => {
      server.store(name, 'an earlier revision');
    };
    if (!isLate) leave();
    let isLeft = !isLate;
    server.fault = (request) => {
      if (!isLeft && isPut(request, '.zip')) {
        isLeft = true;
        leave();
      }
      return undefined;
    };
    expect((await vision(1, 1, ['--format', 'zip'])).code).toBe(0);
    expect(isLeft).toBe(true);
    expect(server.objects.get(name)?.bytes.subarray(0, 2).toString()).toBe('PK');
    expect(await isSound()).toBe(true);
  });

  it.each([
    ['a data file', `${dayOf(1)}.parquet`],
    ['the copy of a manifest', MANIFEST],
    ['orders', '/orders/'],
    ['all files', ''],
  ])('removes nothing from the bucket when another program removes %s of its mirror', async (_, part) => {
    const byDay = ['--partition', 'day'];
    await vision(1, 2, byDay);
    const before = new Map(server.objects);
    let cleaned = 0;
    archive().fault = (path) => {
      if (cleaned === 0 && path.includes(`${dayOf(4)}.zip`)) cleaned = cleanUp(part);
      return false;
    };
    const ended = await vision(3, 4, byDay);
    expect(cleaned).toBeGreaterThan(0);
    expect(ended.code).toBe(1);
    keptAll(ended, before);
    archive().fault = undefined;
    expect((await vision(3, 4, byDay)).code).toBe(0);
    expect(await days()).toEqual([1, 2, 3, 4]);
    expect(await isSound()).toBe(true);
  });

  it('replaces no file that another program has removed from its mirror', async () => {
    await vision(1, 2);
    const before = new Map(server.objects);
    archive().fault = (path) => {
      if (path.includes(`${dayOf(3)}.zip`)) cleanUp(MONTH);
      return false;
    };
    const ended = await vision(3, 4);
    expect(ended.code).toBe(1);
    keptAll(ended, before);
  });

  it('removes nothing by verify --fix when another program removes a data file of its mirror', async () => {
    await vision(1, 2, ['--partition', 'day']);
    const before = new Map(server.objects);
    server.fault = ({ method, key }) => {
      if (method === 'GET' && key.endsWith(`${dayOf(2)}.parquet`)) cleanUp(`${dayOf(1)}.parquet`);
      return undefined;
    };
    const env = { ...lake.environment, TMPDIR: temp };
    const ended = await cryptodlProcess(['verify', '--fix', '--out', lake.out], { env });
    expect(ended.code).toBe(1);
    keptAll(ended, before);
  });

  it('removes what it replaces: the file of a month, and the report of failures that a retry has mended', async () => {
    archive().fault = (path, _, response) => {
      if (!path.includes(`${dayOf(2)}.zip`)) return false;
      response.writeHead(500).end();
      return true;
    };
    expect((await vision(1, 3, ['--retries', '0'])).code).toBe(3);
    const [report] = keys('/_failures/');
    archive().fault = undefined;
    const retry = ['retry', `s3://${server.bucket}/${report}`, '--archive-url', archive().url, ...FAST];
    expect((await cryptodl(retry, { env: lake.environment })).code).toBe(0);
    expect(removals()).toEqual([report]);
    expect((await vision(1, 3, ['--force', '--partition', 'day'])).code).toBe(0);
    expect(removals()).toEqual([report, expect.stringContaining(MONTH)]);
    expect(keys('.parquet')).toHaveLength(3);
    expect(await days()).toEqual([1, 2, 3]);
    expect(await isSound()).toBe(true);
  });

  function run(words: readonly string[], out = lake.out): Promise<CliResult> {
    const elsewhere = ['--temp-dir', mkdtempSync(join(scratch, 'temp-')), '--now', NOW];
    const own = ['vision', '--interval', '1h', '--out', out, '--archive-url', archive().url, ...FAST];
    return cryptodlProcess([...own, ...words, ...elsewhere], { env: lake.environment });
  }

  /** A run whose first put of an order waits until another run, which begins then, has ended. Resolves with the codes of both. */
  async function ordering(waiting: readonly string[], other: readonly string[]): Promise<unknown[]> {
    let between: CliResult | undefined;
    server.fault = async (record) => {
      if (!isPut(record, '.json') || !record.key.includes('/orders/')) return undefined;
      server.fault = undefined;
      between = await run(other);
      return undefined;
    };
    const { code } = await run(waiting);
    return [between?.code, code];
  }

  /** Words, symbols and first day. */
  const orders = (): string[] =>
    keys('/orders/')
      .map((key) => JSON.parse(String(server.objects.get(key)?.bytes)) as Order)
      .map(({ words, symbols, first }) => `${words.join()} ${symbols.join()} ${first}`)
      .toSorted();

  it('joins its order with that of another run that has put it meanwhile', async () => {
    const from = (day: number): string[] => ['--symbols', 'BTCUSDT', '--from', dayOf(day)];
    expect(await ordering(from(5), from(1))).toEqual([0, 0]);
    expect(orders()).toEqual([`BTCUSDT BTCUSDT ${dayOf(1)}`]);
    const check = ['check', '--out', lake.out, '--now', NOW];
    expect((await cryptodl(check, { env: lake.environment })).code).toBe(0);
    expect(await days()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('adds its symbols beside those that another run has added to an order meanwhile', async () => {
    const words = (symbols: string): string[] => ['--symbols', symbols, '--from', dayOf(8)];
    expect((await run(words('BTCUSDT'))).code).toBe(0);
    const added = ['BTCUSDT,ETHUSDT', 'BTCUSDT,SOLUSDT'] as const;
    expect(await ordering(words(added[0]), words(added[1]))).toEqual([0, 0]);
    expect(orders()).toEqual(added.map((symbols) => `${symbols} ${symbols} ${dayOf(8)}`));
  });

  it.each(['parquet', 'csv'])(
    'writes a partition of %s again when another writer changes the series while its file is read',
    async (format) => {
      for (const date of [28, 29, 30, 31]) {
        const name = `BTCUSDT-1h-2026-10-${date}`;
        const key = `data/futures/um/daily/klines/BTCUSDT/1h/${name}.zip`;
        publish(join(scratch, 'archive'), key, hourlyBars([name.slice(-10)], date));
      }
      const words = (from: number, to: number): string[] => [
        '--symbols',
        'BTCUSDT',
        '--format',
        format,
        '--from',
        `2026-10-${from}`,
        '--to',
        dayOf(to),
        '--exact',
      ];
      const other = scene.newLake();
      expect((await run(words(30, 2))).code).toBe(0);
      expect((await run(words(29, 3), other.out)).code).toBe(0);
      const [october, november] = [10, 11].map(
        (month) => `${FOLDER}/symbol=BTCUSDT/2026-${month}.${format}`,
      ) as [string, string];
      const requested = (name: string, path: string): S3Record | undefined =>
        server.requests.find(({ method, key }) => method === name && key.endsWith(path));
      const until = async (isTrue: () => boolean): Promise<void> => {
        while (!isTrue()) await sleep(1);
      };
      server.requests.length = 0;
      let isDone = false;
      server.fault = async ({ method, key }) => {
        // November is brought in when October is put, which finds the files of the other writer then.
        if (method === 'GET' && key.endsWith(november))
          await until(() => requested('PUT', october) !== undefined);
        if (isDone || method !== 'PUT' || !key.endsWith(october)) return undefined;
        await until(() => requested('GET', november)?.status === 200);
        isDone = true;
        for (const path of [october, november, MANIFEST]) lake.change(path, other.read(path));
        return undefined;
      };
      const ended = await run(words(28, 4));
      expect([ended.code, isDone]).toEqual([0, true]);
      const sql =
        'SELECT count(*) AS rows, count(DISTINCT open_time) AS hours, sum(open) AS prices FROM um_klines';
      const found = await cryptodl(['sql', sql, '--csv', '--out', lake.out], { env: lake.environment });
      const prices = 24 * (28 + 29 + 30 + 31 + 1 + 2 + 3 + 4);
      expect(found.stdout).toBe(`rows,hours,prices\n192,192,${prices}\n`);
      expect(await isSound()).toBe(true);
    },
  );

  it('puts a file above 16 MiB in parts, and reads it again', async () => {
    const begun = Date.parse(`${dayOf(1)}T00:00:00Z`);
    const rows = Array.from(
      { length: 350_000 },
      (_, at) => `${1_000_000 + at},1.5,2.5,${2_000_000 + at},${2_000_000 + at},${begun + at},true`,
    );
    const key = `data/futures/um/daily/aggTrades/BTCUSDT/BTCUSDT-aggTrades-${dayOf(1)}.zip`;
    publish(join(scratch, 'archive'), key, `${rows.join('\n')}\n`);
    const trades = ['--dataset', 'aggTrades', '--format', 'csv', '--interval', 'none'];
    expect((await vision(1, 1, trades)).code).toBe(0);
    const [file = ''] = keys('.csv');
    expect(server.objects.get(file)?.bytes.length).toBeGreaterThan(17 * MIB);
    expect(server.requests.some(({ query }) => query['partNumber'] === '2')).toBe(true);
    const count = ['sql', 'SELECT count(*) AS c FROM um_aggTrades', '--csv', '--out', lake.out];
    expect((await cryptodl(count, { env: lake.environment })).stdout).toBe('c\n350000\n');
  });
});
