/** What a careful reviewer tried: rows must not be lost, doubled or mixed in any order of force, stop and retry. */
import { existsSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliOptions, CliResult } from '../helpers/cli.js';
import {
  manifestOf,
  filesBelow,
  manifestLines,
  parquetDigests,
  readCsv,
  readParquet,
} from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/metrics/symbol=BTCUSDT';
const PREFIX = 'data/futures/um/daily/metrics/BTCUSDT';
const keyOf = (day: number): string =>
  `${PREFIX}/BTCUSDT-metrics-2026-10-${String(day).padStart(2, '0')}.zip`;

describe('nothing is lost or doubled', () => {
  const scene = useScene({ archive: [{ dataset: 'metrics', from: '2026-10-01', to: '2026-10-10' }] });
  const { scratch, folder } = scene;

  const args = (
    out: string,
    to: number,
    flags: readonly string[] = [],
  ): string[] => argv`vision --dataset metrics --symbols BTCUSDT --from 2026-10-01 --to
    2026-10-${String(to).padStart(2, '0')} --archive-url ${scene.archive.url} --out
    ${join(scratch, out)} --json ${FAST} ${flags}`;
  const run = (
    out: string,
    to: number,
    flags: readonly string[] = [],
    options: CliOptions = {},
  ): Promise<CliResult> => cryptodl(args(out, to, flags), options);
  const answer = (key: string, status: number): void => {
    scene.archive.fault = (path, _request, response) => {
      if (path !== `/${key}` && path !== `/${key}.CHECKSUM`) return false;
      response.writeHead(status).end();
      return true;
    };
  };
  /** Rows in the files, and rows that the manifest says are held: both must be the same. */
  async function heldRows(out: string): Promise<{ rows: number; distinct: number; said: number }> {
    const files = filesBelow(join(scratch, out, SERIES), '.parquet');
    const rows = (
      await Promise.all(files.map((file) => readParquet(join(scratch, out, SERIES, file))))
    ).flat();
    const live = new Map<unknown, number>();
    for (const line of manifestLines(join(scratch, out, SERIES))) {
      if (line['kind'] === 'dropped') live.delete(line['key']);
      else if (line['kind'] === 'object') live.set(line['key'], Number(line['rows']));
    }
    const said = [...live.values()].reduce((sum, count) => sum + count, 0);
    return {
      rows: rows.length,
      distinct: new Set(rows.map((row) => (row['create_time'] as Date).getTime())).size,
      said,
    };
  }

  /** Sends the signal when the archive gets so many requests of zips. */
  async function stopAtZip(
    out: string,
    count: number,
    signal: NodeJS.Signals,
    flags: readonly string[] = [],
  ): Promise<CliResult> {
    let zips = 0;
    const stopped = await run(out, 10, ['--concurrency', '2', ...flags], {
      onSpawn: (child) => {
        scene.archive.fault = (path) => {
          zips += path.endsWith('.zip') ? 1 : 0;
          if (zips === count) child.kill(signal);
          return false;
        };
      },
    });
    scene.archive.fault = undefined;
    return stopped;
  }

  it('a SIGINT leaves a file that the manifest does not list', async () => {
    const out = 'unlisted';
    await cryptodlOk(args(out, 10));
    rmSync(manifestOf(join(scratch, out, SERIES)));
    const before = await parquetDigests(join(scratch, out));
    const stopped = await stopAtZip(out, 8, 'SIGINT');
    expect(stopped.code).toBe(130);
    expect(await parquetDigests(join(scratch, out))).toEqual(before);
    await cryptodlOk(args(out, 10));
    expect(await heldRows(out)).toEqual({ rows: 2880, distinct: 2880, said: 2880 });
    expect(existsSync(join(scratch, out, '_quarantine'))).toBe(false);
  });

  /** A lake whose file has ten days while its manifest names five: the state after a kill between file and manifest. */
  async function killedBeforeManifest(out: string, format: readonly string[]): Promise<string> {
    await cryptodlOk(args(out, 5, format));
    const manifest = readFileSync(manifestOf(join(scratch, out, SERIES)));
    await cryptodlOk(args(out, 10, format));
    writeFileSync(manifestOf(join(scratch, out, SERIES)), manifest);
    return join(scratch, out, SERIES);
  }

  /** A lake whose manifest has the lines of ten days while its file has five: the state after a kill between lines and file. */
  async function killedBeforeRename(out: string): Promise<string> {
    await cryptodlOk(args(out, 5));
    const file = join(scratch, out, SERIES, '2026-10.parquet');
    const before = readFileSync(file);
    await cryptodlOk(args(out, 10));
    writeFileSync(file, before);
    return file;
  }

  it('counts no day of a killed run after other files have replaced the one that it would have changed', async () => {
    const out = 'removed-after-kill';
    const file = await killedBeforeRename(out);
    await cryptodlOk(args(out, 5, ['--partition', 'day', '--force']));
    expect(existsSync(file)).toBe(false);
    const { stderr } = await cryptodl(['verify', '--out', join(scratch, out)]);
    expect(stderr).toContain('all sound');
    await cryptodlOk(args(out, 10, ['--partition', 'day']));
    expect(await heldRows(out)).toMatchObject({ rows: 2880, distinct: 2880 });
    expect(filesBelow(join(scratch, out, SERIES), '.parquet')).toHaveLength(10);
  });

  it('counts no day of a killed run after verify --fix has taken the damaged file that it would have changed', async () => {
    const out = 'fixed-after-kill';
    const file = await killedBeforeRename(out);
    const bytes = readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
    writeFileSync(file, bytes);
    await cryptodl(['verify', '--deep', '--fix', '--out', join(scratch, out)]);
    expect(existsSync(file)).toBe(false);
    const { stderr } = await cryptodl(['verify', '--out', join(scratch, out)]);
    expect(stderr).toContain('all sound');
    await cryptodlOk(args(out, 10));
    expect(await heldRows(out)).toMatchObject({ rows: 2880, distinct: 2880 });
  });

  it.each(['csv', 'parquet'])(
    '%s: a file with more days than its manifest is replaced by all days, or kept in the quarantine',
    async (format) => {
      const flags = ['--format', format];
      const again = await killedBeforeManifest(`again-${format}`, flags);
      await cryptodlOk(args(`again-${format}`, 10, flags));
      expect(existsSync(join(scratch, `again-${format}`, '_quarantine'))).toBe(false);
      expect(manifestLines(again).filter(({ kind }) => kind === 'object')).toHaveLength(15);

      const narrow = await killedBeforeManifest(`narrow-${format}`, flags);
      const before = readFileSync(join(narrow, `2026-10.${format}`));
      const lastDay = args(`narrow-${format}`, 10, flags).map((word) =>
        word === '2026-10-01' ? '2026-10-10' : word,
      );
      const result = await cryptodlOk(lastDay.filter((word) => word !== '--json'));
      const kept = filesBelow(join(scratch, `narrow-${format}`, '_quarantine'), `.${format}`);
      expect(kept).toHaveLength(1);
      const bytes = readFileSync(join(scratch, `narrow-${format}`, '_quarantine', kept[0] ?? ''));
      expect(bytes.equals(before)).toBe(true);
      expect(result.stderr).toContain('quarantine');
    },
  );

  it('a SIGTERM during the rebuild of a damaged partition leaves the manifest true', async () => {
    const out = 'stopped';
    await cryptodlOk(args(out, 10));
    truncateSync(join(scratch, out, SERIES, '2026-10.parquet'), 500);
    const stopped = await stopAtZip(out, 4, 'SIGTERM');
    expect(stopped.code).toBe(143);
    await cryptodlOk(args(out, 10));
    expect(await heldRows(out)).toEqual({ rows: 2880, distinct: 2880, said: 2880 });
  });

  it('from month to day files with one day refused, no row is seen twice; a second --force finishes it', async () => {
    const out = 'split';
    await cryptodlOk(args(out, 6));
    answer(keyOf(3), 400);
    const result = await run(out, 6, ['--partition', 'day', '--force']);
    scene.archive.fault = undefined;
    expect(result.code).not.toBe(0);
    expect(await heldRows(out)).toEqual({ rows: 6 * 288, distinct: 6 * 288, said: 6 * 288 });
    expect(filesBelow(join(scratch, out, SERIES), '.parquet')).toEqual(['2026-10.parquet']);
    await cryptodlOk(args(out, 6, ['--partition', 'day', '--force']));
    expect(await heldRows(out)).toEqual({ rows: 6 * 288, distinct: 6 * 288, said: 6 * 288 });
    expect(filesBelow(join(scratch, out, SERIES), '.parquet')).toHaveLength(6);
  });

  it('retry with a report that is older than the settings of the series keeps these settings', async () => {
    const out = 'stale-report';
    answer(keyOf(2), 400);
    const failed = await run(out, 5, ['--format', 'csv']);
    expect(failed.code).toBe(4);
    const report = join(scratch, out, '_failures', filesBelow(join(scratch, out, '_failures'))[0] ?? '');
    const rewritten = await run(out, 5, ['--format', 'csv', '--timestamps', 'ms', '--force']);
    expect(rewritten.code).toBe(4);
    scene.archive.fault = undefined;
    const before = readFileSync(join(scratch, out, SERIES, '2026-10.csv'), 'utf8');
    await cryptodlOk(['retry', report, ...FAST]);
    const after = readFileSync(join(scratch, out, SERIES, '2026-10.csv'), 'utf8');
    expect(after.split('\n')).toEqual(expect.arrayContaining(before.split('\n')));
    expect(readCsv(join(scratch, out, SERIES, '2026-10.csv'))).toHaveLength(5 * 288);
    for (const [time = ''] of after
      .split('\n')
      .slice(1, -1)
      .map((line) => line.split(',')))
      expect(time).toMatch(/^\d{13}$/);
  });

  it('a revised object beside one that is gone is taken, and the rows of the other stay', async () => {
    const out = 'revised-and-gone';
    await cryptodlOk(args(out, 5));
    const other = join(scratch, 'other');
    makeArchive(other, {
      market: 'um',
      dataset: 'metrics',
      symbols: ['BTCUSDT'],
      from: '2026-10-04',
      to: '2026-10-04',
      cadence: 'daily',
      seed: 7,
    });
    const saved = ['', '.CHECKSUM'].map((ending) => ({
      path: join(folder, keyOf(4) + ending),
      bytes: readFileSync(join(folder, keyOf(4) + ending)),
    }));
    for (const ending of ['', '.CHECKSUM'])
      renameSync(join(other, keyOf(4) + ending), join(folder, keyOf(4) + ending));
    scene.archive.requests.length = 0;
    answer(keyOf(2), 404);
    const result = await run(out, 6);
    scene.archive.fault = undefined;
    for (const { path, bytes } of saved) writeFileSync(path, bytes);
    expect(result.code).toBe(0);
    expect(result.events.at(-1)).toMatchObject({
      outcomes: { ok: 2, skipped: 4, absent: 0, failed: 0 },
      changed: 1,
    });
    expect(scene.archive.objectRequests().filter((path) => path.endsWith('.zip'))).toHaveLength(2);
    expect(await heldRows(out)).toEqual({ rows: 6 * 288, distinct: 6 * 288, said: 6 * 288 });
    expect(filesBelow(join(scratch, out)).filter((path) => path.startsWith('_quarantine'))).toEqual([]);
  });

  it('a mirror whose objects have other ETags than its listing is not fetched again in every run', async () => {
    const mirror = createServer((request, response) => {
      const url = `${scene.archive.url}${request.url ?? ''}`;
      fetch(url).then(
        async (answered) => {
          response.writeHead(answered.status, { etag: 'W/"mirror"' });
          response.end(Buffer.from(await answered.arrayBuffer()));
        },
        () => response.destroy(),
      );
    });
    await new Promise<void>((resolve) => {
      mirror.listen(0, '127.0.0.1', resolve);
    });
    const url = `http://127.0.0.1:${(mirror.address() as AddressInfo).port}`;
    const flags = ['--archive-url', url, '--listing-url', scene.archive.url];
    await cryptodlOk(args('mirror', 3, flags));
    const again = await cryptodlOk(args('mirror', 3, flags));
    mirror.close();
    mirror.closeAllConnections();
    expect(again.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 3 } });
  });

  describe('with monthly objects beside the dailies', () => {
    const KLINES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
    beforeAll(() => {
      const what = {
        market: 'um',
        dataset: 'klines',
        interval: '1h',
        symbols: ['BTCUSDT'],
        from: '2026-09-01',
        to: '2026-09-30',
      } as const;
      makeArchive(folder, { ...what, cadence: 'daily' });
      makeArchive(folder, { ...what, cadence: 'monthly' });
    });
    const klines = (out: string, from: string, to: string): Promise<CliResult> =>
      cryptodl(argv`vision --interval 1h --symbols BTCUSDT --from 2026-09-${from} --to 2026-09-${to} --archive-url
        ${scene.archive.url} --out ${join(scratch, out)} --json ${FAST}`);
    const rowsOf = async (out: string): Promise<number[]> =>
      (await readParquet(join(scratch, out, KLINES, '2026-09.parquet'))).map((row) =>
        (row['open_time'] as Date).getTime(),
      );
    const retry = (out: string): Promise<CliResult> =>
      cryptodl([
        'retry',
        join(scratch, out, '_failures', filesBelow(join(scratch, out, '_failures'))[0] ?? ''),
        '--json',
        ...FAST,
      ]);

    it('retry of a month that is held by days since adds the missing days, and no row twice', async () => {
      answer('data/futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2026-09.zip', 400);
      expect((await klines('days-since', '01', '30')).code).toBe(4);
      scene.archive.fault = undefined;
      await klines('days-since', '25', '30');
      expect((await retry('days-since')).code).toBe(0);
      const times = await rowsOf('days-since');
      expect(times).toHaveLength(30 * 24);
      expect(new Set(times).size).toBe(30 * 24);
    });

    it('retry of days that are held by a month since finds them held', async () => {
      answer('data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-09-25.zip', 400);
      expect((await klines('month-since', '25', '25')).code).toBe(4);
      scene.archive.fault = undefined;
      await klines('month-since', '01', '30');
      const retried = await retry('month-since');
      expect(retried.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 1 }, exitCode: 0 });
      expect(new Set(await rowsOf('month-since')).size).toBe(30 * 24);
    });
  });

  it('retry after a failed forced run fetches the same objects', async () => {
    const out = 'forced-retry';
    await cryptodlOk(args(out, 5));
    answer(keyOf(3), 400);
    expect((await run(out, 5, ['--force'])).code).toBe(4);
    scene.archive.fault = undefined;
    const report = join(scratch, out, '_failures', filesBelow(join(scratch, out, '_failures'))[0] ?? '');
    scene.archive.requests.length = 0;
    await cryptodlOk(['retry', report, '--json', ...FAST]);
    expect(scene.archive.objectRequests()).toContain(`/${keyOf(3)}`);
    expect(await heldRows(out)).toEqual({ rows: 5 * 288, distinct: 5 * 288, said: 5 * 288 });
  });
});
