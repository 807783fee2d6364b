/** Files of a lake that change after `cryptodl universe` has read the manifests. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FileDigests } from '../../src/query/file-digests.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { findFiles } from '../../src/universe/choose-files.js';
import { SoundFiles } from '../../src/universe/sound-files.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({ archive: [{ from: '2026-11-01', to: '2026-11-03', symbols: ['BTCUSDT'] }] });
const series = { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' } as const;

async function foundFiles() {
  const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --from 2026-11-01 --to 2026-11-03');
  const venue = loadBinance();
  const found = await findFiles(lake, venue, new Map([[series.symbol, [series]]]));
  const digests = new FileDigests(new AbortController().signal);
  const [name = ''] = filesBelow(lake, '.parquet');
  return { found, sound: new SoundFiles(found, { root: lake, venue, digests }), path: join(lake, name) };
}

it('a file that a run has replaced since the manifest was read is read with its new content', async () => {
  const { found, sound, path } = await foundFiles();
  const now = found.bySymbol.get(series.symbol) ?? [];
  const before = now.map((one) => ({
    ...one,
    files: one.files.map((file) => ({ ...file, sha256: '0'.repeat(64), rows: 1 })),
  }));
  found.bySymbol.set(series.symbol, before);
  const files = await sound.choose((all) => [...all]);
  expect(files.map((file) => [file.path, file.rows])).toEqual([[path, 72]]);
  expect([found.unread.size, found.leftOut.unsound]).toEqual([0, []]);
});

it('a file that was changed without a run is left out', async () => {
  const { found, sound, path } = await foundFiles();
  const bytes = readFileSync(path);
  bytes.fill(0xff, 20, 24);
  writeFileSync(path, bytes);
  expect(await sound.choose((all) => [...all])).toEqual([]);
  expect([[...found.unread], found.leftOut.unsound]).toEqual([[series.symbol], [path]]);
});
