import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readFooter } from '../../../src/convert/parquet-footer.js';
import { Converter, received } from '../../helpers/conversion.js';
import { scratchFolder } from '../../helpers/folders.js';
import { sql } from '../../helpers/sql.js';

const folder = scratchFolder();
const converter = new Converter(join(folder, 'made'));
afterAll(() => {
  converter.close();
});

describe('the row count of a Parquet file', () => {
  let whole: Buffer;
  beforeAll(async () => {
    const first = Date.UTC(2024, 0, 15);
    const rows = Array.from({ length: 700 }, (_, index) => `${first + index * 60_000},8,0.5\n`);
    const made = await converter.convert({
      series: { market: 'um', dataset: 'fundingRate', symbol: 'BTCUSDT' },
      received: [received('2024-01-15', rows.join(''))],
    });
    whole = readFileSync(made.file);
  });

  it('is read from its footer', async () => {
    const path = join(folder, 'whole.parquet');
    writeFileSync(path, whole);
    expect((await readFooter(path)).rows).toBe(700);
  });

  it('is read from a long footer behind many rows', async () => {
    const path = join(folder, 'long-footer.parquet');
    const text = `repeat('x', ${128 * 1024})`;
    await sql(
      `COPY (SELECT range, random() AS value FROM range(70_000)) TO '${path}' (FORMAT parquet, KV_METADATA {text: ${text}})`,
    );
    expect(readFileSync(path).length).toBeGreaterThan(256 * 1024);
    expect((await readFooter(path)).rows).toBe(70_000);
  });

  it.each([
    ['an empty file', () => Buffer.alloc(0)],
    ['a file that ends in its footer', () => whole.subarray(0, -9)],
    ['a file without its last byte', () => whole.subarray(0, -1)],
    ['a footer that is longer than the file', () => Buffer.from('PAR1\xff\xff\xff\x00PAR1', 'latin1')],
    ['a file of another kind', () => Buffer.from('open_time,open\n1704067200000,1\n')],
    [
      'a footer of zeros',
      () => Buffer.concat([Buffer.alloc(64), Buffer.from([60, 0, 0, 0]), Buffer.from('PAR1')]),
    ],
  ])('is an error of the disk for %s', async (...[, content]) => {
    const path = join(folder, 'part.parquet');
    writeFileSync(path, content());
    await expect(readFooter(path)).rejects.toMatchObject({
      code: 'disk',
      message: expect.stringContaining(path) as string,
    });
  });
});
