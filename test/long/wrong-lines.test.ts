/** Manifest lines that fit their form but not the truth: no run loses rows or zips by them, and `repair` mends what `verify` names. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { filesBelow, manifestLines, manifestOf } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({ archive: [{ from: '2026-10-28', to: '2026-11-05', symbols: ['BTCUSDT'] }] });
const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const ROWS = 9 * 24;
const ZIPS = 'data/futures/um/daily/klines/BTCUSDT/1h';

type Line = Record<string, unknown>;

async function lakeOf(name: string, format = 'parquet'): Promise<string> {
  const flags = `--interval 1h --cadence daily --format ${format} --symbols BTCUSDT --from 2026-10-28 --to 2026-11-05`;
  return (await scene.vision(flags, { lake: name, sceneFlags: '' })).lake;
}

function edit(lake: string, change: (lines: readonly Line[]) => readonly Line[]): void {
  const lines = manifestLines(join(lake, SERIES)) as unknown as readonly Line[];
  const texts = change(lines).map((line) => `${JSON.stringify(line)}\n`);
  writeFileSync(manifestOf(join(lake, SERIES)), texts.join(''));
}

const of = (lines: readonly Line[], day: string): Line => lines.find(({ period }) => period === day) ?? {};
const swapped = (one: Line, other: Line, names: readonly string[]): Line => ({
  ...one,
  ...Object.fromEntries(names.map((name) => [name, other[name]])),
});
const repair = (lake: string, verb = 'repair') =>
  cryptodl([
    ...argv`${verb} --out ${lake} --archive-url ${scene.archive.url} --now ${scene.now}`,
    // Days after the last object are asked from REST: the archive's server stands in for it, and knows no such path.
    ...(verb === 'repair' ? ['--fapi-url', scene.archive.url] : []),
  ]);

async function rowsOf(lake: string): Promise<string> {
  const query = 'SELECT count(*), count(DISTINCT open_time) FROM um_klines';
  return (await cryptodlOk(['sql', query, '--csv', '--out', lake])).stdout.trim().split('\n').at(-1) ?? '';
}

it('two days that name the file of each other are damaged lines, and no row is lost or doubled', async () => {
  const lake = await lakeOf('swapped');
  edit(lake, (lines) => {
    const [one, other] = [of(lines, '2026-10-30'), of(lines, '2026-11-02')];
    const names = ['file', 'fileBytes', 'fileSha256', 'fileRows'];
    return lines.map((line) =>
      line === one ? swapped(one, other, names) : line === other ? swapped(other, one, names) : line,
    );
  });
  rmSync(join(lake, SERIES, '2026-11.parquet'));
  const { code, stdout } = await cryptodl(['verify', '--out', lake]);
  expect([code, stdout]).toEqual([4, expect.stringContaining('"file" is not the file of this object')]);
  expect((await repair(lake)).code).toBe(0);
  expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
  expect(await rowsOf(lake)).toBe(`${ROWS},${ROWS}`);
});

it('a zip line with the file of another zip is damaged, and no zip and no sidecar is lost', async () => {
  const lake = await lakeOf('zips', 'zip');
  const sidecar = (day: string): string =>
    readFileSync(join(lake, ZIPS, `BTCUSDT-1h-${day}.zip.CHECKSUM`), 'utf8');
  const before = ['2026-10-30', '2026-10-31'].map(sidecar);
  edit(lake, (lines) => {
    const names = ['file', 'fileBytes', 'fileSha256', 'bytes', 'sha256', 'etag'];
    const one = of(lines, '2026-10-30');
    return lines.map((line) => (line === one ? swapped(one, of(lines, '2026-10-31'), names) : line));
  });
  expect((await repair(lake)).code).toBe(0);
  expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
  expect(['2026-10-30', '2026-10-31'].map(sidecar)).toEqual(before);
});

it('a line of a day to come fails in repair, which then forgets it', async () => {
  const lake = await lakeOf('future');
  const key = `${ZIPS}/BTCUSDT-1h-2027-01-01.zip`;
  edit(lake, (lines) => [
    ...lines,
    { ...of(lines, '2026-11-02'), key, period: '2027-01-01', file: '2027-01.parquet' },
  ]);
  expect((await cryptodl(['verify', '--out', lake])).code).toBe(4);
  const { code, stderr } = await repair(lake);
  expect([code, stderr]).toEqual([4, expect.stringContaining('object-withdrawn')]);
  expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
  expect(await rowsOf(lake)).toBe(`${ROWS},${ROWS}`);
});

it('a line with other settings stays until --force, and the newest one decides about the settings', async () => {
  const lake = await lakeOf('mixed');
  edit(lake, ([first, ...others]) => [
    { ...first, settings: { ...(first?.['settings'] as object), numbers: 'string' } },
    ...others,
  ]);
  const run = (flags: string) => scene.vision(flags, { lake: 'mixed', sceneFlags: '' });
  const { code, stderr } = await run('--numbers string');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('was written with numbers double, but --numbers is string\n'),
  ]);
  const held = () => manifestLines(join(lake, SERIES)).filter(({ file }) => file !== undefined).length;
  for (const flags of ['', '--numbers double']) expect([(await run(flags)).code, held()]).toEqual([0, 9]);
  expect([(await run('--force')).code, held()]).toEqual([0, 18]);
});

it('every run and retry continues a --force --partition day that did not rewrite all months', async () => {
  const flags = '--interval 1h --cadence daily --symbols BTCUSDT --from 2026-10-28 --retries 0';
  const run = (words: string) => scene.vision(words, { lake: 'split', sceneFlags: '' });
  const { lake } = await run(`${flags} --to 2026-11-04`);
  const files = (month: string) => filesBelow(join(lake, SERIES)).filter((file) => file.includes(month));
  scene.refuse((path) => /-(10-31|11-03)\.zip$/.test(path), 403);
  expect((await run(`${flags} --to 2026-11-04 --force --partition day`)).code).not.toBe(0);
  scene.reset();
  scene.refuse((path) => path.endsWith('-11-03.zip'), 403);
  expect((await repair(lake, 'retry')).code).not.toBe(0);
  expect([files('2026-10').length, files('2026-11')]).toEqual([4, ['2026-11.parquet']]);
  expect((await run('')).code).toBe(0);
  expect(files('2026-11')).toEqual(['2026-11-05.parquet', '2026-11.parquet']);
  edit(lake, (lines) => lines.map((line) => ({ ...line, etag: '"old"' })));
  expect((await run(flags)).code).not.toBe(0);
  expect(await rowsOf(lake)).toBe(`${ROWS},${ROWS}`);
  scene.reset();
  expect([(await run(flags)).code, files('2026-11').length]).toEqual([0, 5]);
  expect((await cryptodl(['verify', '--out', lake])).code).toBe(0);
});
