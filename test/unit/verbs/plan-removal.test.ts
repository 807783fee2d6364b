/** What `remove` takes out of a lake beside the files that all verbs see. */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { lakePaths } from '../../../src/lake/layout.js';
import { appendManifest } from '../../../src/lake/manifests.js';
import { planRemoval } from '../../../src/verbs/remove/remove.js';
import { objectLine } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';

const SERIES = { market: 'um', dataset: 'metrics', symbol: 'BTCUSDT' } as const;
const FILE = '2024-01.parquet';
const keyOf = (day: string): string => `data/futures/um/daily/metrics/BTCUSDT/BTCUSDT-metrics-${day}.zip`;

it('a removal takes the file of a commit that did not happen, also when its earlier objects were dropped', async () => {
  const root = scratchFolder();
  const folder = join(root, 'binance/um/metrics/symbol=BTCUSDT');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, FILE), 'old');
  const before = { bytes: 3, sha256: createHash('sha256').update('old').digest('hex') };
  const key = keyOf('2024-01-01');
  await appendManifest(folder, [
    objectLine('2024-01-01', { key, file: FILE, fileBytes: before.bytes, fileSha256: before.sha256 }),
    { v: 1, kind: 'dropped', key, format: 'parquet', at: '2024-02-03T00:00:00.000Z' },
    objectLine('2024-01-02', {
      key: keyOf('2024-01-02'),
      file: FILE,
      at: '2024-02-04T00:00:00.000Z',
      fileBefore: before,
    }),
  ]);
  const { series } = await planRemoval(lakePaths(root), loadBinance(), { ids: [], series: [SERIES] });
  const path = `binance/um/metrics/symbol=BTCUSDT/${FILE}`;
  expect(series).toMatchObject([{ data: [{ path, bytes: 3 }], kept: [] }]);
});
