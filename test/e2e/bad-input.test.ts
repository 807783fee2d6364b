import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const NOW = '2026-11-21T12:00:00Z';

describe('bad input', () => {
  const scratch = scratchFolder();
  let archive: TestArchive;
  beforeAll(async () => {
    const folder = join(scratch, 'archive');
    makeArchive(folder, {
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT', 'ETHUSDT'],
      from: '2026-11-14',
      to: '2026-11-20',
      cadence: 'daily',
    });
    archive = await startArchive(folder);
    writeFileSync(join(scratch, 'unknown-key.yaml'), 'symbols: BTCUSDT\nconcurency: 5\n');
    writeFileSync(join(scratch, 'no-map.json'), '[1, 2]');
    writeFileSync(join(scratch, 'not-yaml.yaml'), 'a: [1\n');
    writeFileSync(join(scratch, 'empty.txt'), '# nothing\n\n');
  });
  afterAll(() => archive.close());

  const BASE = ['--interval', '1h', '--days', '1'];
  const cases: { type: string; args: readonly string[]; says: string; hint: string }[] = [
    {
      type: 'an unknown market',
      args: ['--market', 'nasdaq', '--symbols', 'BTCUSDT'],
      says: '--market: "nasdaq" is not one of spot, um, cm, option',
      hint: '',
    },
    {
      type: 'an unknown dataset',
      args: ['--dataset', 'kline', '--symbols', 'BTCUSDT'],
      says: 'um has no "kline"; um has klines, aggTrades, trades,',
      hint: 'did you mean klines?',
    },
    {
      type: 'a dataset that the market does not have',
      args: ['--market', 'spot', '--dataset', 'metrics', '--symbols', 'BTCUSDT'],
      says: 'spot has no "metrics"',
      hint: '',
    },
    {
      type: 'an interval in capitals',
      args: ['--interval', '1M', '--symbols', 'BTCUSDT'],
      says: 'um klines has no "1M"',
      hint: 'did you mean 1mo (1 month) or 1m (1 minute)?',
    },
    {
      type: 'an unknown interval',
      args: ['--interval', '7m', '--symbols', 'BTCUSDT'],
      says: 'um klines has no "7m"; it has 1m, 3m, 5m',
      hint: '',
    },
    {
      type: 'an unknown flag',
      args: ['--symbol', 'BTCUSDT'],
      says: 'vision has no flag --symbol',
      hint: 'did you mean --symbols?',
    },
    {
      type: 'an unknown flag value',
      args: [...BASE, '--format', 'parket', '--symbols', 'BTCUSDT'],
      says: '--format: "parket" is not one of parquet, csv, zip',
      hint: 'did you mean parquet?',
    },
    { type: 'an empty symbol list', args: [...BASE, '--symbols', ''], says: '--symbols', hint: '' },
    {
      type: 'a symbol file without symbols',
      args: [...BASE, '--symbols', '@empty.txt'],
      says: '--symbols names no symbol',
      hint: "--symbols BTCUSDT,ETHUSDT or --symbols '*USDT'",
    },
    {
      type: 'a symbol file that is not there',
      args: [...BASE, '--symbols', '@nowhere.txt'],
      says: 'cannot read nowhere.txt (no such file or folder)',
      hint: 'name a file with a list of symbols',
    },
    {
      type: 'only exclusions',
      args: [...BASE, '--symbols', '!BTCUSDT'],
      says: '--symbols has only exclusions',
      hint: '--symbols',
    },
    {
      type: 'a glob that matches nothing',
      args: [...BASE, '--symbols', '*BUSD'],
      says: '--symbols *BUSD matches none of the 2 symbols of um klines',
      hint: 'for example BTCUSDT, ETHUSDT',
    },
    {
      type: 'a mistyped symbol',
      args: [...BASE, '--symbols', 'BTCUSTD'],
      says: 'the archive has no BTCUSTD',
      hint: 'did you mean BTCUSDT?',
    },
    {
      type: 'a symbol in small letters',
      args: [...BASE, '--symbols', 'btcusdt'],
      says: 'the archive has no btcusdt',
      hint: 'did you mean BTCUSDT?',
    },
    {
      type: 'a symbol that is a path',
      args: [...BASE, '--symbols', '../../etc/passwd'],
      says: '"../../etc/passwd" is not a symbol',
      hint: 'symbols look like BTCUSDT',
    },
    {
      type: 'a quote that nothing has',
      args: [...BASE, '--symbols', 'all', '--quote', 'EUR'],
      says: '--quote EUR matches none of the 2 selected symbols',
      hint: 'for example',
    },
    {
      type: 'exclusions of everything',
      args: [...BASE, '--symbols', 'all,!*'],
      says: 'exclude all 2 selected symbols',
      hint: '',
    },
    {
      type: '--from after --to',
      args: ['--interval', '1h', '--symbols', 'BTCUSDT', '--from', '2026-11-20', '--to', '2026-11-14'],
      says: '--from 2026-11-20 is after --to 2026-11-14',
      hint: '--from 2026-11-14 --to 2026-11-20',
    },
    {
      type: 'a date in the future',
      args: ['--interval', '1h', '--symbols', 'BTCUSDT', '--to', '2026-11-21'],
      says: '--to 2026-11-21 is not over yet: the last complete UTC day is 2026-11-20',
      hint: '--to 2026-11-20',
    },
    {
      type: 'a malformed date',
      args: ['--interval', '1h', '--symbols', 'BTCUSDT', '--from', '2026/11/14'],
      says: '--from: "2026/11/14" is not a date',
      hint: '--from 2026-11-14',
    },
    {
      type: 'a date that does not exist',
      args: ['--interval', '1h', '--symbols', 'BTCUSDT', '--from', '2026-02-30'],
      says: '--from: "2026-02-30" is not a date',
      hint: '--from 2026-02-28',
    },
    {
      type: '--days 0',
      args: ['--interval', '1h', '--symbols', 'BTCUSDT', '--days', '0'],
      says: '--days: "0" is not a whole number of at least 1',
      hint: '--days 7',
    },
    {
      type: 'two kinds of range',
      args: ['--interval', '1h', '--symbols', 'BTCUSDT', '--days', '2', '--from', '2026-11-14'],
      says: '--days and --from are different kinds of range',
      hint: 'keep one',
    },
    {
      type: 'a cadence that the dataset does not have',
      args: ['--dataset', 'fundingRate', '--cadence', 'daily', '--symbols', 'BTCUSDT'],
      says: 'um fundingRate exists only monthly',
      hint: '--cadence monthly',
    },
    {
      type: 'a duration without a unit',
      args: [...BASE, '--symbols', 'BTCUSDT', '--idle-timeout', '10'],
      says: '--idle-timeout: "10" is not a duration',
      hint: '--idle-timeout 500ms',
    },
    {
      type: 'a size that is none',
      args: [...BASE, '--symbols', 'BTCUSDT', '--max-bytes', 'lots'],
      says: '--max-bytes: "lots" is not a size',
      hint: '--max-bytes 500MB',
    },
    ...['0', '1', '999B'].map((size) => ({
      type: `--bwlimit ${size}`,
      args: [...BASE, '--symbols', 'BTCUSDT', '--bwlimit', size],
      says: `--bwlimit: "${size}" is below the minimum of 1kB per second`,
      hint: '--bwlimit 10MB, or leave it out for no limit',
    })),
    ...[
      ['--connect-timeout', '0'],
      ['--headers-timeout', '0s'],
      ['--idle-timeout', '0.5ms'],
      ['--total-timeout', '0ms'],
    ].map(([flag = '', time = '']) => ({
      type: `${flag} ${time}`,
      args: [...BASE, '--symbols', 'BTCUSDT', flag, time],
      says: `${flag}: "${time}" is below the minimum of 1ms`,
      hint: `${flag} 30s`,
    })),
    {
      type: 'an address that is none',
      args: [...BASE, '--symbols', 'BTCUSDT', '--archive-url', 'localhost:8090'],
      says: '--archive-url: "localhost:8090" is not an http(s) address',
      hint: '--archive-url http://127.0.0.1:8090',
    },
    {
      type: 'a concurrency of 0',
      args: [...BASE, '--symbols', 'BTCUSDT', '--concurrency', '0'],
      says: '--concurrency: "0" is not a number from 1 to 1024, auto or auto:MAX',
      hint: '--concurrency 50',
    },
    {
      type: 'an unknown key in --config',
      args: ['--config', 'unknown-key.yaml'],
      says: 'unknown-key.yaml: unknown key "concurency"',
      hint: 'did you mean concurrency?',
    },
    {
      type: 'a --config that is no map',
      args: ['--config', 'no-map.json'],
      says: 'no-map.json does not contain a map',
      hint: 'market: spot',
    },
    {
      type: 'a --config that is no YAML',
      args: ['--config', 'not-yaml.yaml'],
      says: 'not-yaml.yaml is not YAML or JSON',
      hint: '',
    },
    {
      type: 'a --config that is not there',
      args: ['--config', 'nowhere.yaml'],
      says: 'cannot read nowhere.yaml (no such file or folder)',
      hint: '',
    },
    {
      type: 'no symbols on an empty lake',
      args: BASE,
      says: 'holds no series to continue',
      hint: '--symbols BTCUSDT,ETHUSDT\n',
    },
    {
      type: 'a symbol as operand',
      args: ['BTCUSDT'],
      says: '"BTCUSDT" is one too many',
      hint: '--symbols BTCUSDT',
    },
  ];

  it.each(cases)(
    '$type: one clear line, the right command, exit 2, nothing written',
    async ({ args, says, hint }) => {
      const out = join(scratch, 'never');
      const given = args.includes('--archive-url') ? args : [...args, '--archive-url', archive.url];
      const result = await cryptodl(['vision', ...given, '--now', NOW, '--out', out, ...FAST], {
        cwd: scratch,
      });
      expect(result.stderr).toContain(says);
      expect(result.stderr.split('\n')[0]).toMatch(/^cryptodl: /);
      expect(result.stderr).toContain(hint);
      expect(result.stderr).not.toMatch(/\n\s+at /);
      expect(result.code).toBe(2);
      expect(result.stdout).toBe('');
      expect(existsSync(join(out, 'binance'))).toBe(false);
      expect(existsSync(join(out, '_failures'))).toBe(false);
    },
  );

  it.each<{ args: readonly string[]; says: string; hint?: string }>([
    { args: [], says: 'no command given' },
    { args: ['vison'], says: '"vison" is not a command', hint: 'did you mean vision?' },
    ...[
      ['help', 'vison'],
      ['vison', '--help'],
      ['help', 'download'],
    ].map((args) => ({
      args,
      says: `"${args.find((word) => !word.includes('help')) ?? ''}" is not a command`,
      hint: 'did you mean vision?\n  cryptodl vision --help\n',
    })),
    { args: ['help', 'xyzzyq'], says: '"xyzzyq" is not a command', hint: 'commands are vision, ' },
    { args: ['retry'], says: 'retry needs the failure report of a run' },
    { args: ['retry', 'nowhere.jsonl'], says: 'cannot read nowhere.jsonl (no such file or folder)' },
    { args: ['retry', 'unknown-key.yaml'], says: 'unknown-key.yaml line 1 is not JSON' },
    ...[
      ['vision', '--symbols', 'BTCUSDT', '--out'],
      ['enqueue', 'vision', '--symbols', 'BTCUSDT', '--redis', 'redis://127.0.0.1:1', '--out'],
      ['worker', '--redis', 'redis://127.0.0.1:1', '--out'],
      ['coverage', '--out'],
    ].map((args) => ({
      args: [...args, 'gs://lake/data'],
      says: '--out: a lake cannot be at a gs:// address',
      hint: 'write the path of a folder, or s3://BUCKET/PREFIX',
    })),
    { args: ['serve', 'nowhere'], says: 'nowhere is not a folder' },
  ])('cryptodl $args says "$says" and ends with 2', async ({ args, says, hint }) => {
    const result = await cryptodl(args, { cwd: scratch });
    expect(result.stderr).toContain(says);
    expect(result.stderr).toContain(hint ?? '');
    expect(result.code).toBe(2);
  });

  it.skipIf(process.getuid?.() === 0)(
    'an output folder that cannot be written ends with 1 and says where',
    async () => {
      const out = join(scratch, 'read-only');
      mkdirSync(out);
      chmodSync(out, 0o500);
      const result = await cryptodl([
        'vision',
        ...BASE,
        '--symbols',
        'BTCUSDT',
        '--archive-url',
        archive.url,
        '--now',
        NOW,
        '--out',
        out,
        ...FAST,
      ]);
      expect(result.code).toBe(1);
      expect(result.stderr).toContain(out);
    },
  );

  it.each([
    ['vision', ['--symbols', 'BTCUSDT']],
    ['vision', ['--symbols', 'BTCUSDT', '--dry-run']],
    ['vision', []],
    ['metrics', ['--symbols', 'BTCUSDT']],
    ['repair', []],
    ['verify', []],
    ['verify', ['--fix']],
    ['coverage', []],
    ['sql', ['SHOW TABLES']],
    ['audit', []],
  ])('%s %j with a file as --out ends with 2, says where, and asks no host', async (verb, flags) => {
    const out = join(scratch, 'empty.txt');
    const isOnline = !['coverage', 'sql'].includes(verb);
    const online = isOnline ? ['--archive-url', archive.url] : [];
    if (verb === 'metrics') online.push('--fapi-url', archive.url);
    archive.requests.length = 0;
    const result = await cryptodl([verb, ...flags, '--out', out, ...online]);
    expect(result.stderr).toContain(`cryptodl: --out: ${out} is a file, not a folder\n`);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    expect([result.code, result.stdout, archive.requests]).toEqual([2, '', []]);
  });

  it('a failure report that cannot be written is refused before the first request', async () => {
    const failures = join(scratch, 'empty.txt', 'x.jsonl');
    archive.requests.length = 0;
    const result = await cryptodl([
      'vision',
      ...BASE,
      '--symbols',
      'BTCUSDT',
      '--archive-url',
      archive.url,
      '--now',
      NOW,
      '--out',
      join(scratch, 'no-report'),
      '--failures',
      failures,
      ...FAST,
    ]);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(`--failures ${failures} cannot be written`);
    expect(archive.requests).toEqual([]);
  });

  it('an audit of a file in place of a lake is refused before the first request', async () => {
    archive.requests.length = 0;
    const file = join(scratch, 'empty.txt');
    const hosts = ['--archive-url', archive.url, '--now', NOW, '--max-wait', '1s'];
    const { code, stderr } = await cryptodl(['audit', '--symbols', 'BTCUSDT', '--out', file, ...hosts]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('is a file, not a folder') as string]);
    expect(archive.requests).toEqual([]);
  });

  it('a run that is refused makes no failure report', async () => {
    const failures = join(scratch, 'never-made.jsonl');
    const flags = ['--symbols', 'BTCUSDT', '--max-bytes', '1', '--failures', failures];
    const result = await cryptodl([
      'vision',
      ...BASE,
      ...flags,
      '--archive-url',
      archive.url,
      '--now',
      NOW,
      '--out',
      join(scratch, 'no-report'),
      ...FAST,
    ]);
    expect(result.code).toBe(2);
    expect(existsSync(failures)).toBe(false);
  });

  it('an unreachable archive ends with 1 and names the next step', async () => {
    const result = await cryptodl([
      'vision',
      ...BASE,
      '--symbols',
      'BTCUSDT',
      '--archive-url',
      'http://127.0.0.1:9',
      '--now',
      NOW,
      '--out',
      join(scratch, 'nobody'),
      ...FAST,
    ]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain('cannot be reached');
    expect(result.stderr).toContain('check the network, --archive-url and --listing-url');
  });

  it('metrics without a network says what cannot be reached, and names the address', async () => {
    const where = ['--fapi-url', '--archive-url', '--listing-url'].flatMap((flag) => [
      flag,
      'http://127.0.0.1:9',
    ]);
    const what = ['--symbols', 'BTCUSDT', '--days', '1', '--out', join(scratch, 'nobody-metrics')];
    const result = await cryptodl(['metrics', ...what, ...where, ...FAST, '--retries', '0']);
    expect([result.code, result.stderr]).toEqual([
      1,
      'cryptodl: REST cannot be reached: 127.0.0.1:9: connect ECONNREFUSED 127.0.0.1:9\n' +
        '  check the network and --fapi-url\n',
    ]);
  });

  it.each([
    ['um', '--fapi-url'],
    ['cm', '--dapi-url'],
  ])('an unreachable REST host of %s names %s', async (market, flag) => {
    const what = ['--market', market, '--dataset', 'fundingRate', '--symbols', 'BTCUSDT', '--days', '1'];
    const out = ['--out', join(scratch, `nobody-${market}`)];
    const result = await cryptodl([
      'metrics',
      ...what,
      flag,
      'http://127.0.0.1:9',
      ...out,
      ...FAST,
      '--retries',
      '8',
    ]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`check the network and ${flag}\n`);
  });
});
