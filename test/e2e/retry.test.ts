/** `cryptodl retry`: what it keeps of the run that failed, and what it makes of a damaged report. */
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { beforeEach, describe, expect, it } from 'vitest';
import { cryptodl, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, readParquet } from '../helpers/lake.js';
import { isListing, isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-11-18', to: '2026-11-24' }],
  isTimeVirtual: true,
});
const keyOf = (day: string): string => `data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-${day}.zip`;
const WANTED = ['--symbols', 'BTCUSDT', '--interval', '1h', '--days', '3', '--out', 'lake'];
const REPORT = 'report.jsonl';
let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(scene.scratch, 'in-'));
});

function cli(argv: readonly string[]): Promise<CliResult> {
  return cryptodl(argv, {
    cwd,
    clock: scene.virtual,
    env: { CRYPTODL_ARCHIVE_URL: scene.archive.url, CRYPTODL_NOW: '2026-11-21T12:00:00Z' },
  });
}

function failing(...days: readonly string[]): void {
  scene.archive.fault = (path, _request, response) => {
    if (!days.some((day) => path === `/${keyOf(day)}`)) return false;
    response.writeHead(503).end();
    return true;
  };
}

const text = (): string => readFileSync(join(cwd, REPORT), 'utf8');
const header = (): unknown => JSON.parse(text().split('\n')[0] ?? '');

/** The last line of a report is cut, as by a full disk. */
function cut(): void {
  writeFileSync(join(cwd, REPORT), text().slice(0, -40));
}

describe('a report whose last line is cut', () => {
  it('is named and ends with 3, and the other objects are fetched', async () => {
    failing('2026-11-19', '2026-11-20');
    await cli(['vision', ...WANTED, '--failures', REPORT, ...FAST]);
    cut();
    scene.archive.fault = undefined;
    const result = await cli(['retry', REPORT, '--quiet', ...FAST]);
    expect([result.code, result.stderr]).toEqual([
      3,
      expect.stringContaining('warning: report.jsonl line 3 is cut, so its failure is not known'),
    ]);
    expect(existsSync(join(cwd, REPORT))).toBe(false);
  });
});

it('keeps the options and the verb of the run, also for rows from REST', async () => {
  failing('2026-11-20');
  const pace = ['--retries', '1', '--retry-delay', '1ms', '--breaker-open', '50ms', '--progress', 'none'];
  await cli(['vision', ...WANTED, '--failures', REPORT, ...pace]);
  const [first = '', failure = ''] = text().split('\n');
  const fromRest = failure.replace(keyOf('2026-11-20'), 'rest/um/klines/1h/BTCUSDT/2026-11-20');
  writeFileSync(join(cwd, REPORT), `${first}\n\n${fromRest}\n`);
  const { stdout } = await cli(['retry', REPORT, '--print-options']);
  expect(stdout).toMatch(/^retry-preset +vision {2}\(/m);
  expect(stdout).toMatch(/^retries +1 {2}\(failure report\)$/m);
  writeFileSync(join(cwd, REPORT), `${first}\n\n${failure}\n`);
  expect((await cli(['retry', REPORT, '--max-wait', '1s', '--progress', 'none'])).code).toBe(3);
  expect(header()).toMatchObject({
    verb: 'vision',
    options: { retries: ['1'], symbols: ['BTCUSDT'], 'max-wait': ['1s'] },
  });
});

it('keeps all options of the run that say how things are fetched and judged', async () => {
  failing('2026-11-20');
  await cli(['vision', ...WANTED, '--failures', REPORT, ...FAST]);
  const kept = {
    'temp-dir': 'spool',
    verify: 'etag',
    'stale-checksum': 'warn',
    strict: 'true',
    concurrency: '3',
    'retry-factor': '3',
    'retry-max-delay': '9s',
    'retry-strategy': 'fixed',
    'breaker-failures': '7',
    'breaker-successes': '4',
    'connect-timeout': '7s',
    'headers-timeout': '8s',
    'idle-timeout': '9s',
    'total-timeout': '2h',
    'blocked-wait': '3m',
    'request-interval': '2ms',
    'requests-per-minute': '500',
    limits: 'archive=50/s',
    priority: 'low',
    bwlimit: '3MB',
    'pool-limit': '40',
    'pool-limit-per-host': '20',
    'keep-alive': '5s',
    http2: 'true',
    'ca-file': '/srv/ca.pem',
    'fallback-url': 'http://127.0.0.1:9',
  };
  const [first = '', ...others] = text().split('\n');
  const head = JSON.parse(first) as { options: Record<string, string[]> };
  for (const [name, value] of Object.entries(kept)) head.options[name] = [value];
  writeFileSync(join(cwd, REPORT), [JSON.stringify(head), ...others].join('\n'));
  const { stdout } = await cli(['retry', REPORT, '--print-options']);
  const named = stdout.split('\n').filter((line) => line.endsWith('(failure report)'));
  const names = new Set(named.map((line) => line.split(' ')[0]));
  expect(Object.keys(kept).filter((name) => !names.has(name))).toEqual([]);
  expect(names).not.toContain('symbols');
});

it('names the certificates of the run by an absolute path, for a retry from elsewhere', async () => {
  failing('2026-11-20');
  writeFileSync(join(cwd, 'ca.pem'), rootCertificates[0] ?? '');
  await cli(['vision', ...WANTED, '--failures', REPORT, '--ca-file', 'ca.pem', ...FAST]);
  expect(header()).toMatchObject({ options: { 'ca-file': [join(cwd, 'ca.pem')] } });
});

it('continues a lake that was written again with other settings', async () => {
  failing('2026-11-19');
  await cli(['vision', ...WANTED, '--partition', 'day', '--failures', REPORT, ...FAST]);
  rmSync(join(cwd, 'lake'), { recursive: true });
  await cli(['vision', ...WANTED, '--partition', 'month', ...FAST]);
  scene.archive.fault = undefined;
  const retried = await cli(['retry', REPORT, '--json', ...FAST]);
  expect([retried.code, retried.events.at(-1)]).toMatchObject([0, { outcomes: { ok: 1 } }]);
  expect((await cli(['verify', '--deep', '--out', 'lake'])).code).toBe(0);
});

it('of a report without a failure says that none is left', async () => {
  failing('2026-11-19');
  await cli(['vision', ...WANTED, '--failures', REPORT, ...FAST]);
  scene.archive.fault = undefined;
  writeFileSync(join(cwd, REPORT), `${text().split('\n')[0] ?? ''}\n`);
  const { code, stderr } = await cli(['retry', REPORT, ...FAST]);
  expect([code, stderr.split('\n')[0]]).toEqual([0, 'report.jsonl in lake: no object is left to retry']);
});

describe('a report in a lake', () => {
  const FILE = 'binance/um/klines/interval=1h/symbol=BTCUSDT/2026-11.parquet';
  const reports = (lake: string): string[] =>
    filesBelow(join(cwd, lake, '_failures')).map((name) => join(lake, '_failures', name));
  const contents = (lake: string): Record<string, string> =>
    Object.fromEntries(
      filesBelow(join(cwd, lake)).map((path) => [path, readFileSync(join(cwd, lake, path), 'base64')]),
    );
  const rowsIn = async (lake: string): Promise<number> => (await readParquet(join(cwd, lake, FILE))).length;

  /** A lake without one of its three days. The report names it. */
  async function failed(...flags: readonly string[]): Promise<string> {
    failing('2026-11-19');
    expect((await cli(['vision', ...WANTED, ...FAST, ...flags])).code).toBe(3);
    scene.archive.fault = undefined;
    scene.archive.requests.length = 0;
    return reports('lake')[0] ?? '';
  }

  it('that was moved is completed in its place, and the old place stays empty', async () => {
    const report = await failed('--temp-dir', 'lake/work');
    renameSync(join(cwd, 'lake'), join(cwd, 'moved'));
    expect((await cli(['retry', report.replace('lake', 'moved'), ...FAST])).code).toBe(0);
    expect(existsSync(join(cwd, 'lake'))).toBe(false);
    expect([await rowsIn('moved'), reports('moved')]).toEqual([72, []]);
  });

  it('that was copied is completed in the copy, also without its hidden folder, and the original stays as it is', async () => {
    const report = await failed();
    cpSync(join(cwd, 'lake'), join(cwd, 'copy'), { recursive: true });
    rmSync(join(cwd, 'copy/.cryptodl'), { recursive: true });
    const before = contents('lake');
    symlinkSync(report.replace('lake', 'copy'), join(cwd, 'latest'));
    expect((await cli(['retry', 'latest', ...FAST])).code).toBe(0);
    expect(await rowsIn('copy')).toBe(72);
    expect(contents('lake')).toEqual(before);
  });

  it('that was moved out of it writes into the recorded lake, or into --out', async () => {
    const report = await failed();
    cpSync(join(cwd, report), join(cwd, '_failures/copy.jsonl'));
    expect((await cli(['retry', '_failures/copy.jsonl', '--out', 'new', ...FAST])).code).toBe(0);
    expect([await rowsIn('new'), await rowsIn('lake')]).toEqual([24, 48]);
    renameSync(join(cwd, report), join(cwd, '_failures/copy.jsonl'));
    expect((await cli(['retry', '_failures/copy.jsonl', ...FAST])).code).toBe(0);
    expect(await rowsIn('lake')).toBe(72);
  });

  it('is completed by its own objects only, however much the archive has by then', async () => {
    const report = await failed();
    const later = ['--now', '2026-11-25T12:00:00Z'];
    const retried = await cli(['retry', report, ...later, '--json', ...FAST]);
    expect([retried.code, retried.events.at(-1)]).toMatchObject([0, { outcomes: { ok: 1, skipped: 0 } }]);
    expect(scene.archive.requests.filter(isZip)).toEqual([`/${keyOf('2026-11-19')}`]);
    expect(scene.archive.requests.filter(isListing)).toHaveLength(1);
  });
});

it.each([
  ['2026-11-20', '2200-01-01'],
  ['2026-11-20', '0001-01-01'],
  ['BTCUSDT', 'X'.repeat(5000)],
])('refuses a report in which %s became %s, and writes nothing', async (from, to) => {
  failing('2026-11-20');
  await cli(['vision', ...WANTED, '--failures', REPORT, ...FAST]);
  scene.archive.fault = undefined;
  const [first = '', ...failures] = text().split('\n');
  writeFileSync(join(cwd, REPORT), [first, ...failures.map((line) => line.replaceAll(from, to))].join('\n'));
  const manifest = join(cwd, 'lake/_manifests/binance/um/klines/interval=1h/symbol=BTCUSDT.jsonl');
  const before = readFileSync(manifest, 'utf8');
  const { code, stderr } = await cli(['retry', REPORT, ...FAST]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('line 2')]);
  expect(readFileSync(manifest, 'utf8')).toBe(before);
});
