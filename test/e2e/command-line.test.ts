import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const BIN = fileURLToPath(new URL('../../bin/cryptodl.js', import.meta.url));

describe('the command line', () => {
  const scene = useScene({
    archive: [{ symbols: ['BTCUSDT', 'ETHUSDT', 'BTCUSDC'], from: '2026-11-14', to: '2026-11-20' }],
  });
  const { scratch } = scene;
  let base: readonly string[];
  beforeAll(() => {
    base = ['vision', '--interval', '1h', '--archive-url', scene.archive.url, '--now', '2026-11-21', ...FAST];
  });

  it('help as a word prints the same as --help', async () => {
    const printed = async (...args: readonly string[]): Promise<string> => (await cryptodlOk(args)).stdout;
    expect(await printed('help', 'vision')).toBe(await printed('vision', '--help'));
    expect(await printed('help')).toBe(await printed('--help'));
  });

  it('help shows flags in groups, defaults and examples, --help-all shows all flags, and both need no network', async () => {
    const { stdout } = await cryptodlOk(['vision', '--help']);
    for (const group of ['What:', 'When:', 'Where:', 'How:']) expect(stdout).toContain(`\n${group}\n`);
    expect(stdout).toContain('parquet, csv or zip (default: parquet)');
    expect(stdout).toContain('cryptodl vision -s BTCUSDT,ETHUSDT -d 7');
    expect(stdout).not.toContain('--breaker-open');
    const all = await cryptodlOk(['vision', '--help-all']);
    for (const group of ['Safety:', 'Network:', 'Messages:']) expect(all.stdout).toContain(`\n${group}\n`);
    expect(all.stdout).toContain('--breaker-open TIME');
    expect((await cryptodl(['--help'])).stdout).toMatch(/\n {2}vision [\s\S]*retry \[report\] [\s\S]*serve/);
    for (const version of ['--version', 'version', '-v', '-V'])
      expect((await cryptodlOk([version])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('--print-options shows every value and where it comes from: flag, environment, config file, default', async () => {
    writeFileSync(
      join(scratch, 'config.yaml'),
      'market: spot\nsymbols: [BTCUSDT, ETHUSDT]\nretries: 7\nas-published: true\n',
    );
    const { stdout } = await cryptodlOk(
      ['vision', '--retries', '9', '--print-options', '--config', 'config.yaml'],
      {
        cwd: scratch,
        env: { CRYPTODL_MARKET: 'cm', CRYPTODL_IDLE_TIMEOUT: '3s', CRYPTODL_RETRIES: '8' },
      },
    );
    expect(stdout).toMatch(/^retries +9 +\(flag\)$/m);
    expect(stdout).toMatch(/^market +cm +\(environment\)$/m);
    expect(stdout).toMatch(/^idle-timeout +3s +\(environment\)$/m);
    expect(stdout).toMatch(/^symbols +BTCUSDT,ETHUSDT +\(config file\)$/m);
    expect(stdout).toMatch(/^as-published +true +\(config file\)$/m);
    expect(stdout).toMatch(/^format +parquet +\(default\)$/m);
    expect(stdout).toMatch(/^partition +auto +\(default\)$/m);
    expect(stdout).toMatch(/^temp-dir +OUT\/\.cryptodl\/tmp +\(default\)$/m);
  });

  it('prints the plan before the work, and after it counts, bytes, rows, files, places and the next command', async () => {
    const out = join(scratch, 'said');
    const { stdout, stderr } = await cryptodlOk([
      ...base,
      ...'--symbols BTCUSDT,ETHUSDT --days 7 --out'.split(' '),
      out,
    ]);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^um klines 1h in \S+: BTCUSDT, ETHUSDT, 2026-11-14 … 2026-11-20 \(7 days\)\n {2}to fetch {3}14 objects, \d+ kB, into 2 partitions of parquet\n/,
    );
    expect(stderr).toMatch(
      /\n14 ok in \S+\n {2}fetched {4}\d+ kB at .*\/s, \d+ requests, 0 retried\n {2}written {4}336 rows in 2 files, /,
    );
    expect(stderr).toContain(`data       `);
    const [, next = ''] = /\n {2}next {7}(cryptodl sql '.*) --out \S+\n$/.exec(stderr) ?? [];
    expect(next).toBe("cryptodl sql 'SELECT symbol, interval, count(*) AS rows FROM um_klines GROUP BY ALL'");
    expect(rowsOfNext(stderr)).toEqual(['BTCUSDT,1h,168', 'ETHUSDT,1h,168']);
  });

  /** Runs the suggested line in a shell; gives the rows that it prints, sorted. */
  function rowsOfNext(stderr: string): string[] {
    const [, line = ''] = /\n {2}next {7}cryptodl (.*)\n$/.exec(stderr) ?? [];
    const printed = execFileSync('sh', ['-c', `'${process.execPath}' '${BIN}' ${line} --csv`], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return printed.trim().split('\n').slice(1).sort();
  }

  it('ends with a query that a shell runs also for a path with quotes and spaces, and after a continuation', async () => {
    const out = join(scratch, "the lake's $HOME");
    const days = ['--symbols', 'BTCUSDT', '--from', '2026-11-14', '--to', '2026-11-15'];
    const first = await cryptodlOk([...base, ...days, '--out', out, '--format', 'csv']);
    expect(rowsOfNext(first.stderr)).toEqual(['BTCUSDT,1h,48']);
    const again = argv`vision --archive-url ${scene.archive.url} --now 2026-11-21 --out ${out} ${FAST}`;
    expect(rowsOfNext((await cryptodlOk(again)).stderr)).toEqual(['BTCUSDT,1h,168']);
    expect((await cryptodlOk(again)).stderr).not.toContain('next ');
  });

  it('ends with a command that serves the lake, if the lake has the files of the archive', async () => {
    const out = join(scratch, 'raw "files"');
    const flags = ['--symbols', 'BTCUSDT', '--days', '1', '--format', 'zip', '--out', out];
    const { stderr } = await cryptodlOk([...base, ...flags]);
    expect(stderr).toMatch(/\n {2}next {7}cryptodl serve '[^']*\/raw "files"'\n$/);
  });

  it('--quiet says nothing when all is well, and something when it is not', async () => {
    const out = join(scratch, 'quiet');
    const good = await cryptodlOk([...base, '--symbols', 'BTCUSDT', '--days', '7', '--out', out, '--quiet']);
    expect(good.stdout + good.stderr).toBe('');
    scene.archive.fault = (path, _request, response) => {
      if (!path.endsWith('.zip')) return false;
      response.writeHead(401).end();
      return true;
    };
    const bad = await cryptodl([...base, '--symbols', 'ETHUSDT', '--days', '7', '--out', out, '--quiet']);
    scene.archive.fault = undefined;
    expect(bad.code).toBe(4);
    expect(bad.stderr).toContain('7 failed');
    expect(bad.stderr).toContain(
      '  next       run the same command again later: a retry now fails the same way',
    );
  });

  it('--json is NDJSON on stdout, the summary last', async () => {
    const { stdout, events } = await cryptodlOk(
      argv`${base} --symbols BTCUSDT --days 2 --out ${join(scratch, 'json')} --json`,
    );
    expect(stdout.trimEnd().split('\n')).toHaveLength(events.length);
    expect(events.map((event) => event['event'])).toEqual([
      'plan',
      'partition',
      'object',
      'object',
      'summary',
    ]);
    expect(events.at(-1)).toMatchObject({
      outcomes: { ok: 2, failed: 0 },
      rows: 48,
      files: 1,
      requests: 7,
      failures: null,
      exitCode: 0,
    });
    expect(Number(events.at(-1)?.['elapsedMs'])).toBeGreaterThanOrEqual(0);
  });

  it('--log-file appends structured lines that carry the attempt', async () => {
    let failed = false;
    scene.archive.fault = (path, _request, response) => {
      if (failed || !path.endsWith('.zip')) return false;
      failed = true;
      response.writeHead(503).end();
      return true;
    };
    const log = join(scratch, 'logs', 'run.log');
    await cryptodlOk(argv`${base} --symbols BTCUSDT --days 1 --out ${join(scratch, 'logged')} --log-file ${log} --log-level
      debug`);
    scene.archive.fault = undefined;
    const lines = readFileSync(log, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.find((line) => line['msg'] === 'retry')).toMatchObject({
      retry_attempt: 1,
      original_error: 'http-server-error',
      upstream: new URL(scene.archive.url).host,
    });
    expect(lines.find((line) => line['msg'] === 'ok')).toMatchObject({ rows: 24 });
  });

  it('a config file and the environment know ~, and a typed range beats one of theirs', async () => {
    const { stderr } = await cryptodlOk(
      [...base, '--symbols', 'BTCUSDT', '--from', '2026-11-20', '--temp-dir', join(scratch, 'spool')],
      { cwd: scratch, env: { HOME: join(scratch, 'home'), CRYPTODL_OUT: '~/lake', CRYPTODL_DAYS: '3' } },
    );
    expect(stderr).toContain('2026-11-20 … 2026-11-20 (1 day)');
    expect(stderr).toContain('data       home/lake/binance/um/klines');
    expect(filesBelow(join(scratch, 'home/lake'), '.parquet')).toHaveLength(1);
  });

  it('a run that is refused before it begins has a summary event as well', async () => {
    const { code, events } = await cryptodl([
      ...base,
      ...'--symbols BTCUSDT --days 7 --max-bytes 1 --json --out'.split(' '),
      join(scratch, 'refused'),
    ]);
    expect(code).toBe(2);
    expect(events.at(-1)).toMatchObject({ event: 'summary', exitCode: 2, error: { code: 'usage' } });
  });

  it('serve prints its address, answers vision, and ends with a signal', async () => {
    const served = spawn(process.execPath, [BIN, 'serve', join(scratch, 'archive'), '--port', '0']);
    const url = await new Promise<string>((resolve) => {
      served.stdout.once('data', (chunk: Buffer) => {
        resolve(chunk.toString().trim());
      });
    });
    await cryptodlOk(argv`vision --interval 1h --symbols BTCUSDT --archive-url ${url} --now 2026-11-21 --out
      ${join(scratch, 'served')} ${FAST}`);
    const ended = new Promise((resolve) => served.on('close', resolve));
    served.kill('SIGINT');
    expect(await ended).toBe(130);
    expect(filesBelow(join(scratch, 'served'), '.parquet')).toHaveLength(1);
  });
});
