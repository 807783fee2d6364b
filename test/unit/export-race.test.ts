/** A file of the lake that changes while an export reads it. */
import { createHash } from 'node:crypto';
import { readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createEngine } from '../../src/convert/duckdb.js';
import type { ExportFile } from '../../src/export/export-file.js';
import { stageFile } from '../../src/export/write-file.js';
import { FileDigests } from '../../src/query/file-digests.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { findDataset } from '../../src/source/venue.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({ archive: [{ from: '2026-11-01', to: '2026-11-03', symbols: ['BTCUSDT'] }] });
const spec = findDataset(loadBinance(), 'um', 'klines');

/** Stages the rows of a lake's only file. `change` is called after the manifests were read, and before the rows are. */
async function staged(
  bytesOff: number,
  change: (path: string) => void,
): Promise<{ rows: number } | { code: unknown }> {
  const { lake } = await scene.vision('--interval 1h --symbols BTCUSDT --from 2026-11-01 --to 2026-11-03');
  const [name = ''] = filesBelow(lake, '.parquet');
  const path = join(lake, name);
  if (spec === undefined) throw new Error('no klines');
  const settings = {
    format: 'parquet',
    partition: 'month',
    cadence: 'auto',
    numbers: 'double',
    timestamps: 'us',
    asPublished: false,
  } as const;
  const days = { from: 0, to: 40_000 };
  const bytes = statSync(path).size + bytesOff;
  const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
  const source = {
    series: { market: 'um', dataset: 'klines', interval: '1h', symbol: 'BTCUSDT' },
    spec,
    files: [
      {
        path,
        settings,
        bytes,
        sha256,
        days,
        isWhole: true,
        missing: [],
        rows: 72,
        mayRepeat: false,
        last: undefined,
      },
    ],
    within: undefined,
    days,
  };
  const file: ExportFile = {
    path: 'x.csv',
    sources: [source],
    select: ([rows = '']) => {
      change(path);
      return `SELECT open_time, open FROM (${rows})`;
    },
    order: ['open_time'],
    isUnique: true,
    form: { kind: 'csv', hasHeader: true, delimiter: ',', isCompressed: false },
    days,
  };
  const folder = scene.newFolder();
  const engine = createEngine({ tempFolder: folder });
  const session = await engine.session();
  try {
    const digests = new FileDigests(new AbortController().signal);
    return await stageFile(session, file, { staging: folder, digests });
  } catch (error) {
    return { code: (error as { code?: unknown }).code };
  } finally {
    session.close();
    engine.close();
    rmSync(folder, { recursive: true });
  }
}

describe('stageFile', () => {
  it('writes the rows of a file that stays', async () => {
    expect(await staged(0, () => undefined)).toMatchObject({ rows: 72, repeated: 0 });
  });

  it('refuses a file that was replaced after the manifests were read', async () => {
    expect(await staged(1, () => undefined)).toEqual({ code: 'partition-incomplete' });
  });

  it('refuses a file that is replaced while its rows are read', async () => {
    expect(await staged(0, (path) => utimesSync(path, 1, 1))).toEqual({ code: 'partition-incomplete' });
  });
});
