/** `cryptodl universe` with damaged, missing and wrong data, and with places where it must not write. */
import { appendFileSync, cpSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { daysBetween, writeTraded } from '../helpers/universe-archive.js';

const scratch = scratchFolder();
const NOW = '2024-05-10T08:00:00Z';
const LAST = '2024-05-09';
const QUOTES: Readonly<Record<string, string>> = {
  AUSDT: '400.5',
  BUSDT: '300',
  HOLEUSDT: '200',
  ENDUSDT: '100',
  // Numbers with these digits in a lake of doubles too.
  WIDEUSDT: '1e22',
  WIDERUSDT: '10000000000000000000000000',
  HUGEUSDT: '1e31',
};
let archive: TestArchive;

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  for (const [symbol, quote] of Object.entries(QUOTES)) {
    const days = daysBetween('2024-03-01', LAST).filter(
      (day) =>
        (symbol !== 'HOLEUSDT' || day !== '2024-04-30') && (symbol !== 'ENDUSDT' || day <= '2024-03-10'),
    );
    writeTraded(folder, { symbol, days: new Map(days.map((day) => [day, { quote }])) }, NOW);
  }
  archive = await startArchive(folder);
  await download('lake', '-s', 'AUSDT,BUSDT,HOLEUSDT');
  // Each hour has the largest number of trades, and a volume of 9e26. Both are below the limits of one number.
  const sums = join(scratch, 'sums-archive');
  const day = { quote: '2.16e28', count: Number.MAX_SAFE_INTEGER };
  const days = daysBetween('2024-01-01', '2024-03-31').map((each) => [each, day] as const);
  writeTraded(sums, { symbol: 'AUSDT', interval: '1h', days: new Map(days) }, NOW);
  const served = await startArchive(sums);
  try {
    const range = ['-i', '1h', '--from', '2024-01-01', '--to', '2024-03-31', '--archive-url', served.url];
    await download('sums', '-s', 'AUSDT', ...range, '--numbers', 'string');
  } finally {
    await served.close();
  }
});
afterAll(() => archive.close());

function download(lake: string, ...args: readonly string[]): Promise<unknown> {
  const range = ['-i', '1d', '--from', '2024-03-01', '--to', LAST, '--now', NOW];
  return cryptodlOk(
    ['vision', '--archive-url', archive.url, '--out', join(scratch, lake), ...FAST, ...range].concat(args),
  );
}

/** From April on, without another --from. */
function universe(lake: string, ...args: readonly string[]) {
  return cryptodl(
    [
      'universe',
      '--now',
      NOW,
      '--out',
      lake,
      ...(args.includes('--from') ? [] : ['--from', '2024-04']),
      ...args,
    ],
    { cwd: scratch },
  );
}

function membersOf(csv: string): string[] {
  return csv
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').slice(0, 2).join(' '));
}

function copyOf(lake: string, name: string): string {
  cpSync(join(scratch, lake), join(scratch, name), { recursive: true });
  return join(scratch, name);
}

function manifestOf(lake: string, symbol: string): string {
  const folder = join(lake, '_manifests');
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((path) =>
    path.includes(`symbol=${symbol}.`),
  );
  return join(folder, found ?? '');
}

describe('a symbol without the day before a period', () => {
  it.each([
    ['the last period that is ranked', ['--to', '2024-05']],
    ['a period with later rows', ['--every', 'day', '--window', '2d', '--to', '2024-05-03']],
  ])('is named with %s', async (_, args) => {
    const { code, stdout, stderr } = await universe('lake', ...args);
    expect(code).toBe(0);
    expect(membersOf(stdout)).toContain('2024-05-01 AUSDT');
    expect(membersOf(stdout)).not.toContain('2024-05-01 HOLEUSDT');
    expect(stderr).toContain(
      'a symbol without the last day is not a member: HOLEUSDT; cryptodl coverage shows the days',
    );
  });

  it('is not named if it was delisted during the month of the last period', async () => {
    await download('ended', '-s', 'AUSDT,ENDUSDT');
    for (const to of ['2024-03-18', '2024-04-30']) {
      const weeks = ['--every', 'week', '--window', '5d', '--from', '2024-03-06', '--to', to];
      const { code, stdout, stderr } = await universe('ended', ...weeks);
      expect([code, membersOf(stdout).slice(-1)]).toEqual([
        0,
        [`${to === '2024-03-18' ? to : '2024-04-29'} AUSDT`],
      ]);
      expect(membersOf(stdout)).toContain('2024-03-11 ENDUSDT');
      expect(stderr).not.toContain('ENDUSDT');
    }
  });
});

describe('data that cannot be read', () => {
  it('ends the command: a damaged manifest, and a missing file', async () => {
    appendFileSync(manifestOf(copyOf('lake', 'damaged'), 'BUSDT'), '{"v":1,"kind":"object"\n');
    const damaged = await universe('damaged', '--to', '2024-04');
    expect([damaged.code, damaged.stdout]).toEqual([1, '']);
    expect(damaged.stderr).toContain('symbol=BUSDT.');
    const lake = copyOf('lake', 'missing');
    rmSync(join(lake, 'binance/um/klines/interval=1d/symbol=BUSDT/2024-03.parquet'));
    const missing = await universe('missing', '--to', '2024-04');
    expect([missing.code, missing.stdout]).toEqual([1, '']);
    expect(missing.stderr).toContain(
      'um klines 1d BUSDT: missing/binance/um/klines/interval=1d/symbol=BUSDT/2024-03.parquet is missing or damaged; cryptodl verify --fix --out missing, then cryptodl repair --out missing, fetches its objects again',
    );
  });

  it.each([
    ['numbers', 'huge', []],
    ['sums', 'sums', ['--window', '90d']],
  ])('%s above 10^30 are refused in one line', async (_, lake, flags) => {
    if (lake === 'huge') await download('huge', '-s', 'AUSDT,HUGEUSDT');
    const { code, stdout, stderr } = await universe(lake, '--to', '2024-04', ...flags);
    expect([code, stdout, stderr.trimEnd().split('\n').length]).toEqual([1, '', 1]);
  });
});

describe('--target', () => {
  it('in the lake is refused, also through a link', async () => {
    symlinkSync(join(scratch, 'lake'), join(scratch, 'link-to-lake'));
    for (const target of ['lake', 'lake/lists', 'link-to-lake/lists']) {
      const { code, stderr } = await universe('lake', '--as', 'freqtrade', '--target', target, '--force');
      expect(code).toBe(2);
      expect(stderr).toContain('is in the lake lake');
    }
  });
});
