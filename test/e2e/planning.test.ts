import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, readParquet } from '../helpers/lake.js';

const NOW = '2026-11-21T12:00:00Z';

describe('the plan', () => {
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  beforeAll(async () => {
    const days = { market: 'um', dataset: 'klines', interval: '1h', cadence: 'daily' } as const;
    makeArchive(folder, {
      ...days,
      symbols: ['BTCUSDT', '币安人生USDT'],
      from: '2026-09-01',
      to: '2026-11-20',
    });
    makeArchive(folder, { ...days, symbols: ['NEWUSDT'], from: '2026-11-10', to: '2026-11-20' });
    makeArchive(folder, { ...days, symbols: ['GONEUSDC'], from: '2026-08-01', to: '2026-09-15' });
    makeArchive(folder, {
      ...days,
      cadence: 'monthly',
      symbols: ['BTCUSDT'],
      from: '2026-09-01',
      to: '2026-10-31',
    });
    makeArchive(folder, {
      market: 'um',
      dataset: 'fundingRate',
      cadence: 'monthly',
      symbols: ['BTCUSDT'],
      from: '2026-08-01',
      to: '2026-10-31',
    });
    const series = join(folder, 'data/futures/um/daily/klines/BTCUSDT/1h');
    writeFileSync(join(series, 'part-00000-0fae7358-c000.zip'), 'stray');
    for (const ending of ['', '.CHECKSUM']) rmSync(join(series, `BTCUSDT-1h-2026-11-15.zip${ending}`));
    archive = await startArchive(folder);
  });
  afterAll(() => archive.close());
  afterEach(() => {
    archive.fault = undefined;
  });

  const run = (args: readonly string[], out = 'unused'): Promise<CliResult> =>
    cryptodl([
      'vision',
      '--interval',
      '1h',
      '--archive-url',
      archive.url,
      '--now',
      NOW,
      '--out',
      join(scratch, out),
      ...FAST,
      ...args,
    ]);
  const dryRun = async (args: readonly string[]): Promise<string[]> => {
    const { stdout, code, stderr } = await run([...args, '--dry-run']);
    expect(stderr).not.toContain('cryptodl:');
    expect(code).toBe(0);
    return stdout.split('\n').filter((line) => line !== '');
  };
  const periods = (lines: readonly string[]): string[] =>
    lines.map(
      (line) => `${line.split('\t')[0] ?? ''} ${/(\d{4}-\d{2}(?:-\d{2})?)\.zip$/.exec(line)?.[1] ?? ''}`,
    );

  it('goes on without a listed symbol whose name no folder can have, and names it', async () => {
    const tooLong = 'X'.repeat(250);
    const listed = join(folder, 'data/futures/um/daily/klines', tooLong);
    mkdirSync(join(listed, '1h'), { recursive: true });
    writeFileSync(join(listed, '1h/x.zip'), 'x');
    const { code, stderr } = await run(['--symbols', 'all', '--days', '1'], 'too-long');
    rmSync(listed, { recursive: true });
    expect(stderr).toContain(
      `the archive lists a symbol of 250 characters, which is left out: ${'X'.repeat(40)}…`,
    );
    expect(code).toBe(0);
  });

  it('prints fetch or absent, bytes and key of every object on stdout, and nothing else', async () => {
    const lines = await dryRun(['--symbols', 'BTCUSDT', '--days', '7']);
    expect(periods(lines)).toEqual([
      'fetch 2026-11-14',
      'absent 2026-11-15',
      'fetch 2026-11-16',
      'fetch 2026-11-17',
      'fetch 2026-11-18',
      'fetch 2026-11-19',
      'fetch 2026-11-20',
    ]);
    expect(lines[0]).toMatch(
      /^fetch\t\d{3,}\tdata\/futures\/um\/daily\/klines\/BTCUSDT\/1h\/BTCUSDT-1h-2026-11-14\.zip$/,
    );
    expect(filesBelow(scratch).filter((path) => path.startsWith('unused'))).toEqual([]);
  });

  it('asks the archive for nothing that the listing does not have', async () => {
    archive.requests.length = 0;
    const result = await run(
      ['--symbols', 'NEWUSDT,BTCUSDT', '--from', '2026-11-05', '--to', '2026-11-20', '--json'],
      'asks',
    );
    expect(result.events.at(-1)).toMatchObject({
      outcomes: { ok: 26, absent: 6 },
      absent: { 'not-listed-yet': 5, hole: 1 },
    });
    expect(archive.objectRequests()).toHaveLength(26 * 2);
    const listings = archive.requests.filter((path) => path.includes('prefix='));
    expect(
      listings.some((path) =>
        path.includes('marker=data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-11-01'),
      ),
    ).toBe(true);
  });

  it('finds non-ASCII and delisted symbols by glob, says what an exclusion removes, and why a day is absent', async () => {
    const result = await run(['--symbols', '*USD?,!BTC*', '--days', '2', '--json'], 'globs');
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('excluded   1 symbol: BTCUSDT');
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 4, absent: 2 }, absent: { delisted: 2 } });
    expect(filesBelow(join(scratch, 'globs'), '.parquet')).toContain(
      'binance/um/klines/interval=1h/symbol=币安人生USDT/2026-11.parquet',
    );
  });

  it('takes a monthly object for each whole month, dailies for the rest, and every month that a range touches where only months exist', async () => {
    expect(
      periods(await dryRun(['--symbols', 'BTCUSDT', '--from', '2026-09-29', '--to', '2026-11-01'])),
    ).toEqual(['fetch 2026-09-29', 'fetch 2026-09-30', 'fetch 2026-10', 'fetch 2026-11-01']);
    const { stdout, stderr } = await run([
      '--symbols',
      'BTCUSDT',
      '--dataset',
      'fundingRate',
      '--from',
      '2026-09-30',
      '--to',
      '2026-10-01',
      '--dry-run',
    ]);
    expect(periods(stdout.trim().split('\n'))).toEqual(['fetch 2026-09', 'fetch 2026-10']);
    expect(stderr).toContain('every month that the range touches (2026-09 … 2026-10)');
    expect(
      periods(await dryRun(['--symbols', 'BTCUSDT', '--months', '1', '--cadence', 'daily'])),
    ).toHaveLength(31);
    expect(periods(await dryRun(['--symbols', 'BTCUSDT', '--months', '2', '--cadence', 'monthly']))).toEqual([
      'fetch 2026-09',
      'fetch 2026-10',
    ]);
  });

  it('an open start begins where the series begins', async () => {
    expect(periods(await dryRun(['--symbols', 'NEWUSDT', '--to', '2026-11-12']))).toEqual([
      'fetch 2026-11-10',
      'fetch 2026-11-11',
      'fetch 2026-11-12',
    ]);
  });

  it('a series that holds the days of a month keeps them', async () => {
    await run(['--symbols', 'BTCUSDT', '--from', '2026-10-01', '--to', '2026-10-02'], 'keeps');
    const result = await run(['--symbols', 'BTCUSDT', '--months', '1', '--json'], 'keeps');
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 29, skipped: 2 } });
    expect(filesBelow(join(scratch, 'keeps'), '.parquet')).toEqual([
      'binance/um/klines/interval=1h/symbol=BTCUSDT/2026-10.parquet',
    ]);
    expect(
      await readParquet(join(scratch, 'keeps/binance/um/klines/interval=1h/symbol=BTCUSDT/2026-10.parquet')),
    ).toHaveLength(31 * 24);
  });

  it('without a listing it probes sidecars by calendar and says so', async () => {
    archive.fault = (path, _request, response) => {
      if (!path.includes('prefix=')) return false;
      response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>');
      return true;
    };
    const result = await run(['--symbols', 'BTCUSDT', '--days', '3', '--json'], 'no-listing');
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('the listing cannot be had');
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 3 } });
    const globs = await run(['--symbols', '*USDT', '--days', '3'], 'no-listing');
    expect(globs.code).toBe(1);
    expect(globs.stderr).toContain('name the symbols exactly');
  });

  it('where the listing lags it probes the newest three days only', async () => {
    archive.fault = (path, _request, response) => path.includes('prefix=') && lagging(response, path);
    const result = await run([
      '--symbols',
      'BTCUSDT',
      '--cadence',
      'daily',
      '--from',
      '2026-11-12',
      '--to',
      '2026-11-20',
      '--dry-run',
    ]);
    expect(periods(result.stdout.trim().split('\n'))).toEqual([
      'fetch 2026-11-12',
      'absent 2026-11-13',
      'absent 2026-11-14',
      'absent 2026-11-15',
      'absent 2026-11-16',
      'absent 2026-11-17',
      'fetch 2026-11-18',
      'fetch 2026-11-19',
      'fetch 2026-11-20',
    ]);
    expect(result.stderr).toContain('the listing lags behind the archive: 3 objects');
  });

  /** A listing that ends with 2026-11-12. */
  function lagging(response: ServerResponse, path: string): boolean {
    const keys = ['2026-11-11', '2026-11-12'].map(
      (day) =>
        `<Contents><Key>data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-${day}.zip</Key><Size>1000</Size><ETag>&quot;x&quot;</ETag></Contents>`,
    );
    const isSymbols =
      path.includes('prefix=data/futures/um/daily/klines/&') ||
      path.endsWith('prefix=data/futures/um/daily/klines/');
    const body = isSymbols
      ? '<CommonPrefixes><Prefix>data/futures/um/daily/klines/BTCUSDT/</Prefix></CommonPrefixes>'
      : keys.join('');
    response.end(
      `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated>${body}</ListBucketResult>`,
    );
    return true;
  }

  it('continues what the lake holds from where each series ends, with its own settings', async () => {
    const out = 'continued';
    await run(
      [
        '--symbols',
        'BTCUSDT',
        '--from',
        '2026-11-16',
        '--to',
        '2026-11-17',
        '--format',
        'csv',
        '--timestamps',
        'ms',
      ],
      out,
    );
    const result = await cryptodlOk([
      'vision',
      '--archive-url',
      archive.url,
      '--now',
      NOW,
      '--out',
      join(scratch, out),
      '--json',
      ...FAST,
    ]);
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 3 } });
    const lines = readFileSync(
      join(scratch, out, 'binance/um/klines/interval=1h/symbol=BTCUSDT/2026-11.csv'),
      'utf8',
    )
      .trimEnd()
      .split('\n');
    expect(lines).toHaveLength(1 + 5 * 24);
    expect(lines[1]).toMatch(/^\d{13},/);
  });

  it('refuses a plan above --max-bytes before the first byte', async () => {
    archive.requests.length = 0;
    const result = await run(['--symbols', 'BTCUSDT', '--days', '7', '--max-bytes', '1kB'], 'max-bytes');
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(/the plan is .* kB, more than --max-bytes 1.0 kB/);
    expect(archive.objectRequests()).toEqual([]);
  });

  it('fetches an object again when its ETag changed upstream, and replaces its rows alone', async () => {
    const out = 'revised';
    await run(['--symbols', 'NEWUSDT', '--days', '5'], out);
    const other = join(scratch, 'other');
    makeArchive(other, {
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      cadence: 'daily',
      symbols: ['NEWUSDT'],
      from: '2026-11-18',
      to: '2026-11-18',
      seed: 99,
    });
    const key = 'data/futures/um/daily/klines/NEWUSDT/1h/NEWUSDT-1h-2026-11-18.zip';
    for (const ending of ['', '.CHECKSUM']) renameSync(join(other, key + ending), join(folder, key + ending));
    const result = await run(['--symbols', 'NEWUSDT', '--days', '5', '--json'], out);
    expect(result.events.at(-1)).toMatchObject({ outcomes: { ok: 1, skipped: 4 } });
    const again = await run(['--symbols', 'NEWUSDT', '--days', '5', '--json'], out);
    expect(again.events.at(-1)).toMatchObject({ outcomes: { ok: 0, skipped: 5 } });
    const rows = await readParquet(
      join(scratch, out, 'binance/um/klines/interval=1h/symbol=NEWUSDT/2026-11.parquet'),
    );
    expect(rows).toHaveLength(5 * 24);
  });
});
