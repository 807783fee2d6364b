/** `cryptodl universe` with files of the lake whose bytes were changed, and with several rows of one candle. */
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { argv, cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { daysBetween, writeTraded } from '../helpers/universe-archive.js';

const scratch = scratchFolder();
const NOW = '2024-05-10T08:00:00Z';
const LAST = '2024-05-09';
const MARCH_OF_B = 'binance/um/klines/interval=1d/symbol=BUSDT/2024-03.parquet';
let archive: TestArchive;

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  const quotes = { AUSDT: '400', BUSDT: '300', CUSDT: '200' };
  for (const [symbol, quote] of Object.entries(quotes)) {
    const days = new Map(daysBetween('2024-03-01', LAST).map((day) => [day, { quote }]));
    writeTraded(folder, { symbol, days }, NOW);
    if (symbol === 'BUSDT') writeTraded(folder, { symbol, days, interval: '12h' }, NOW);
  }
  // Second rows of a candle: other values, and the same ones.
  const days = new Map(daysBetween('2024-03-01', LAST).map((day) => [day, { quote: '100' }]));
  const again = new Map([
    ['2024-03-10', { quote: '9000' }],
    ['2024-03-11', { quote: '100' }],
  ]);
  writeTraded(folder, { symbol: 'DOUBLEUSDT', days, again }, NOW);
  writeTraded(folder, { symbol: 'DOUBLEUSDT', days, again, interval: '12h' }, NOW);
  archive = await startArchive(folder);
  const download = (lake: string, ...args: readonly string[]): Promise<unknown> =>
    cryptodlOk([...vision(lake), ...args], { cwd: scratch });
  await download('lake', '-i', '1d', '-s', 'AUSDT,BUSDT,CUSDT');
  cpSync(join(scratch, 'lake'), join(scratch, 'both'), { recursive: true });
  await download('both', '-i', '12h', '-s', 'BUSDT');
});
afterAll(() => archive.close());

function vision(lake: string): string[] {
  const range = ['--from', '2024-03-01', '--to', LAST, '--now', NOW];
  return ['vision', '--archive-url', archive.url, '--out', lake, ...FAST, ...range];
}

/** The period April, from the days of March. */
function universe(lake: string, ...args: readonly string[]) {
  const april = ['--from', '2024-04', '--to', '2024-04'];
  return cryptodl(['universe', '--now', NOW, '--out', lake, ...april, ...args], { cwd: scratch });
}

function membersOf(csv: string): string[] {
  return csv
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',').slice(1, 5).join(' '));
}

/** Copies a lake, and changes bytes of a file in the copy: its description or its rows. The size stays. */
function damaged(lake: string, name: string, part: 'description' | 'rows', file = MARCH_OF_B): string {
  cpSync(join(scratch, lake), join(scratch, name), { recursive: true });
  const path = join(scratch, name, file);
  const bytes = readFileSync(path);
  const length = bytes.readUInt32LE(bytes.length - 8);
  bytes.fill(0xff, ...(part === 'rows' ? [20, 24] : [bytes.length - 8 - length, bytes.length - length]));
  writeFileSync(path, bytes);
  return path;
}

/** Makes the manifest agree with the changed bytes. */
function commitAsIs(lake: string, path: string): void {
  const folder = join(scratch, lake, '_manifests');
  const digest = createHash('sha256').update(readFileSync(path)).digest('hex');
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((each) =>
    each.includes('symbol=BUSDT.'),
  );
  const manifest = join(folder, found ?? '');
  const lines = readFileSync(manifest, 'utf8').split('\n');
  const changed = lines.map((line) =>
    line.includes('2024-03.parquet')
      ? line.replace(/"fileSha256":"[0-9a-f]{64}"/, `"fileSha256":"${digest}"`)
      : line,
  );
  expect(changed).not.toEqual(lines);
  writeFileSync(manifest, changed.join('\n'));
}

const MEMBERS = ['AUSDT 1 12000 30', 'BUSDT 2 9000 30', 'CUSDT 3 6000 30'];

describe('a file with other bytes', () => {
  it.each(['description', 'rows'] as const)(
    'in its %s is an error that tells the next step',
    async (part) => {
      const lake = `changed-${part}`;
      damaged('lake', lake, part);
      for (const symbols of ['*', 'BUSDT']) {
        const { code, stdout, stderr } = await universe(lake, '--symbols', symbols);
        expect([code, stdout]).toEqual([1, '']);
        expect(stderr).toContain(
          `${lake}/${MARCH_OF_B} does not have the content that was committed; cryptodl verify --fix --out ${lake}, then cryptodl repair --out ${lake}, fetches its objects again`,
        );
      }
    },
  );

  it('is no error if the periods do not need it', async () => {
    damaged('lake', 'later', 'rows', MARCH_OF_B.replace('03', '04'));
    damaged('both', 'shorter', 'rows', MARCH_OF_B.replace('1d', '12h'));
    for (const lake of ['later', 'shorter']) {
      const { code, stdout, stderr } = await universe(lake, '--quiet');
      expect([code, membersOf(stdout), stderr]).toEqual([0, MEMBERS, '']);
    }
  });

  it('and the committed digest may be unreadable too: the error tells how to find it', async () => {
    const path = damaged('lake', 'committed', 'description');
    commitAsIs('committed', path);
    const { code, stdout, stderr } = await universe('committed');
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^cryptodl: .+; cryptodl verify --deep --out committed finds damaged files/);
  });
});

describe('several rows of one candle', () => {
  it.each([
    ['1d', []],
    ['12h', []],
    ['1d', ['--as-published']],
    ['1d', ['--format', 'csv']],
  ] as const)('count once, also in bars and exports (%s %s)', async (interval, args) => {
    const lake = ['doubled', interval, ...args].join('-');
    await cryptodl([...vision(lake), '-i', interval, '-s', 'AUSDT,DOUBLEUSDT', ...args], { cwd: scratch });
    await cryptodl([...vision(lake), '-i', '1d', '-s', 'AUSDT', ...args], { cwd: scratch });
    const { code, stdout } = await universe(lake);
    expect([code, membersOf(stdout)]).toEqual([0, ['AUSDT 1 12000 30', 'DOUBLEUSDT 2 3000 30']]);
    const run = (line: readonly string[]) => cryptodlOk([...line, '-o', lake, '-i', '1d'], { cwd: scratch });
    if (interval === '12h') return;
    await run(argv`bars 3d -s DOUBLEUSDT`);
    const most = 'SELECT max(quote_volume) AS most FROM um_bars';
    const bars = await cryptodlOk(['sql', most, '--json', '-o', lake], { cwd: scratch });
    expect(bars.events).toEqual([{ most: 300 }]);
    const target = `${lake}-csv`;
    await run(argv`export csv -s DOUBLEUSDT --target ${target}`);
    const rows = readFileSync(join(scratch, target, 'um_klines_1d/DOUBLEUSDT.csv'), 'utf8');
    expect([rows.trimEnd().split('\n').length, rows.includes(',9000')]).toEqual([71, false]);
  });
});
