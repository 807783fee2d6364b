/** A file that no manifest line names: `verify` names it, `verify --fix` moves it to the quarantine, and everything else ignores it. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, lstatSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import { FAST, argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, manifestOf } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const FILE = `${SERIES}/2026-10.parquet`;

const symbols = ['BTCUSDT', 'ETHUSDT'];
const scene = useScene({ archive: [{ symbols, from: '2026-10-01', to: '2026-10-06' }] });
const sound = join(scene.scratch, 'sound');
const NOW = ['--now', '2026-10-06T08:00:00Z'];
const places = (lake: string): string[] =>
  argv`--out ${lake} --archive-url ${scene.archive.url} ${NOW} ${FAST}`;
const vision = (lake: string, from: string, to: string): Promise<CliResult> => {
  const range = ['--from', `2026-10-${from}`, '--to', `2026-10-${to}`];
  return cryptodlOk([
    ...'vision --symbols all --interval 1h'.split(' '),
    ...range,
    '--recheck-days',
    '0',
    ...places(lake),
  ]);
};
const verify = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['verify', '--out', lake, ...NOW, '--json', ...flags]);
const found = ({ events }: CliResult): string[] =>
  events
    .filter(({ event }) => event === 'finding')
    .map(({ kind, path }) => `${String(kind)} ${String(path)}`);
const quarantined = (lake: string): string[] =>
  existsSync(join(lake, '_quarantine'))
    ? filesBelow(join(lake, '_quarantine')).filter((path) => !path.endsWith('.cause'))
    : [];

beforeAll(() => vision(sound, '01', '04'));

function copy(): string {
  const lake = scene.newFolder();
  cpSync(sound, lake, { recursive: true });
  return lake;
}

describe.each<[string, (lake: string) => string]>([
  [
    'rows of another month',
    (lake) => {
      cpSync(join(lake, FILE), join(lake, SERIES, '2026-09.parquet'));
      return `${SERIES}/2026-09.parquet`;
    },
  ],
  [
    'rows of a day that the series holds',
    (lake) => {
      cpSync(join(lake, FILE), join(lake, SERIES, '2026-10-02.parquet'));
      return `${SERIES}/2026-10-02.parquet`;
    },
  ],
  [
    'no Parquet',
    (lake) => {
      writeFileSync(join(lake, SERIES, '2026-08.parquet'), 'mine');
      return `${SERIES}/2026-08.parquet`;
    },
  ],
  [
    'the rows of a series whose manifest is missing',
    (lake) => {
      rmSync(manifestOf(join(lake, SERIES)));
      return FILE;
    },
  ],
])('a file with %s', (what, add) => {
  const held = what.includes('manifest') ? ['ETHUSDT'] : symbols;
  // The order names both symbols: coverage shows one that the lake lacks, without rows.
  const counted = symbols.map((symbol) => `${symbol}\t${held.includes(symbol) ? '96' : 'null'}`);

  it('is ignored by sql, coverage, export and runs', async () => {
    const lake = copy();
    const file = add(lake);
    const before = readFileSync(join(lake, file));
    const query = 'SELECT symbol, count(*) AS n FROM um_klines GROUP BY ALL ORDER BY ALL';
    const csv = await cryptodlOk(['sql', query, '--csv', '--out', lake]);
    expect(csv.stdout.trim().split('\n').slice(1)).toEqual(held.map((symbol) => `${symbol},96`));
    const covered = await cryptodl(['coverage', '--out', lake, ...NOW, '--json']);
    const series = covered.events.filter(({ event }) => event === 'series');
    expect(series.map(({ symbol, rows }) => `${String(symbol)}\t${String(rows)}`)).toEqual(counted);
    const target = scene.newFolder();
    await cryptodlOk(['export', 'csv', '--target', join(target, 'csv'), '--out', lake]);
    const exported = filesBelow(target, '.csv').map((path) => readFileSync(join(target, path), 'utf8'));
    expect(exported.map((text) => text.trim().split('\n').length)).toEqual(held.map(() => 97));
    const run = await cryptodl(['vision', ...places(lake), '--from', '2026-10-05', '--to', '2026-10-05']);
    expect([run.code, readFileSync(join(lake, file))]).toEqual([0, before]);
  });

  it('is named by verify, and moved to the quarantine by verify --fix', async () => {
    const lake = copy();
    const file = add(lake);
    const before = readFileSync(join(lake, file));
    const looked = await verify(lake);
    expect([looked.code, found(looked), existsSync(join(lake, file))]).toEqual([
      4,
      [`unlisted ${file}`],
      true,
    ]);
    const fixed = await verify(lake, '--fix');
    expect([fixed.code, fixed.events.at(-1)]).toEqual([0, expect.objectContaining({ exitCode: 0 })]);
    expect(existsSync(join(lake, file))).toBe(false);
    expect(quarantined(lake).map((path) => readFileSync(join(lake, '_quarantine', path)))).toEqual([before]);
    expect((await verify(lake, '--deep')).code).toBe(0);
  });
});

it('a zip of another revision than that of the archive goes to the quarantine before a run replaces it', async () => {
  const lake = scene.newFolder();
  const name = 'BTCUSDT-1h-2026-10-04';
  const file = join(lake, `data/futures/um/daily/klines/BTCUSDT/1h/${name}.zip`);
  const line = argv`vision -s BTCUSDT -i 1h --from 2026-10-01 --to 2026-10-04 --format zip ${places(lake)}`;
  await cryptodlOk(line);
  const before = readFileSync(file);
  rmSync(join(lake, '_manifests'), { recursive: true });
  const folder = scene.newFolder();
  makeArchive(folder, {
    market: 'um',
    dataset: 'klines',
    interval: '1h',
    symbols: ['BTCUSDT'],
    from: '2026-10-01',
    to: '2026-10-04',
    cadence: 'daily',
    seed: 7,
  });
  const revised = await startArchive(folder);
  try {
    await cryptodlOk([...line, '--archive-url', revised.url]);
  } finally {
    await revised.close();
  }
  const kept = quarantined(lake).filter((path) => path.includes(name));
  expect(kept.map((path) => readFileSync(join(lake, '_quarantine', path)))).toEqual([before]);
  expect(readFileSync(file).equals(before)).toBe(false);
  expect((await verify(lake, '--deep')).code).toBe(0);
});

it('a pipe in place of a file is neither opened nor replaced', async () => {
  const lake = copy();
  rmSync(manifestOf(join(lake, SERIES)));
  const pipe = join(lake, FILE);
  rmSync(pipe);
  execFileSync('mkfifo', [pipe]);
  const fixed = await verify(lake, '--fix');
  expect([fixed.code, fixed.stdout]).toEqual([1, expect.stringContaining('it is not a regular file')]);
  const repaired = await cryptodl(['repair', ...places(lake)]);
  expect([repaired.code, repaired.stderr]).toEqual([
    4,
    expect.stringContaining('it is not a regular file; make it readable or move it away'),
  ]);
  const run = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h', '--from', '2026-10-01'];
  const { code, stderr } = await cryptodl([...run, '--to', '2026-10-01', ...places(lake)]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('is not a regular file')]);
  expect(lstatSync(pipe).isFIFO()).toBe(true);
});
