/** A Parquet file without its manifest line is adopted only if its footer and its rows prove each other. */
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import { parquetMetadata } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/klines/interval=1h/symbol=BTCUSDT';
const FILE = `${SERIES}/2026-10.parquet`;
const NOW = ['--now', '2026-10-06T08:00:00Z'];
const RUN = ['vision', '--symbols', 'BTCUSDT', '--interval', '1h'];

const scene = useScene({
  archive: [
    { dataset: 'klines', interval: '1h', symbols: ['BTCUSDT'], from: '2026-10-01', to: '2026-10-06' },
    { dataset: 'aggTrades', from: '2026-10-01', to: '2026-10-02' },
  ],
});
const sound = join(scene.scratch, 'sound');

function places(lake: string): string[] {
  return ['--out', lake, '--archive-url', scene.archive.url, ...NOW, ...FAST];
}

beforeAll(async () => {
  await cryptodlOk([...RUN, '--from', '2026-10-01', '--to', '2026-10-04', ...places(sound)]);
});

/** Replaces text of the footer by text of equal length, so that the file stays readable. */
function edit(lake: string, from: string, to: string): void {
  const text = readFileSync(join(lake, FILE), 'latin1');
  expect([text.includes(from), from.length]).toEqual([true, to.length]);
  writeFileSync(join(lake, FILE), text.replaceAll(from, to), 'latin1');
}

/** Writes the file again with other rows below the same footer. `columns` and `condition` are SQL. */
async function rewrite(lake: string, columns: string, condition = 'true'): Promise<void> {
  const { key_value_metadata: entries = [] } = await parquetMetadata(join(lake, FILE));
  const footer = entries.find(({ key }) => key === 'cryptodl')?.value ?? '';
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  const rows = `SELECT ${columns} FROM read_parquet('${join(sound, FILE)}', hive_partitioning = false) WHERE ${condition}`;
  await connection.run(
    `COPY (${rows}) TO '${join(lake, FILE)}' (FORMAT parquet, KV_METADATA {cryptodl: '${footer.replaceAll("'", "''")}'})`,
  );
  connection.closeSync();
  instance.closeSync();
}

function replaced(column: string, value: string): string {
  const at = "open_time = TIMESTAMP '2026-10-02 05:00:00'";
  return `* REPLACE (CASE WHEN ${at} THEN ${value} ELSE ${column} END AS ${column})`;
}

async function adopts(harm: (lake: string) => unknown): Promise<boolean> {
  const lake = scene.newFolder();
  cpSync(join(sound, SERIES), join(lake, SERIES), { recursive: true });
  await harm(lake);
  const { stdout } = await cryptodl(['verify', '--out', lake, ...NOW, '--json', '--fix']);
  return stdout.includes('adopted');
}

it('a file with the rows of its footer is adopted, also when another program wrote it again', async () => {
  expect(await adopts((lake) => rewrite(lake, '*'))).toBe(true);
});

it.each<[string, (lake: string) => unknown]>([
  ['lacks a row', (lake) => rewrite(lake, '*', "open_time <> TIMESTAMP '2026-10-02 05:00:00'")],
  ['lacks a day', (lake) => rewrite(lake, '*', "open_time::DATE <> DATE '2026-10-02'")],
  [
    'has a bar twice and lacks another one',
    (lake) => rewrite(lake, replaced('open_time', "TIMESTAMP '2026-10-02 04:00:00'")),
  ],
  ['lacks a price', (lake) => rewrite(lake, replaced('close', 'NULL'))],
  ['has an infinite price', (lake) => rewrite(lake, replaced('close', "'Infinity'::DOUBLE"))],
  ['has an infinite time', (lake) => rewrite(lake, replaced('close_time', "'infinity'::TIMESTAMP"))],
  ['has a number of trades that no double holds', (lake) => rewrite(lake, replaced('count', '9e18::BIGINT'))],
  [
    'has a bar half an hour late',
    (lake) => rewrite(lake, replaced('open_time', "TIMESTAMP '2026-10-02 05:30:00'")),
  ],
  [
    'has a bar a microsecond late',
    (lake) => rewrite(lake, replaced('open_time', "TIMESTAMP '2026-10-02 05:00:00.000001'")),
  ],
  ['has a count as DOUBLE', (lake) => rewrite(lake, '* REPLACE (count::DOUBLE AS count)')],
  ['has a price as FLOAT', (lake) => rewrite(lake, '* REPLACE (close::FLOAT AS close)')],
  ['has a price as DECIMAL', (lake) => rewrite(lake, '* REPLACE (close::DECIMAL(18, 8) AS close)')],
  ['has a price as text', (lake) => rewrite(lake, '* REPLACE (close::VARCHAR AS close)')],
  ['has times in milliseconds', (lake) => rewrite(lake, '* REPLACE (open_time::TIMESTAMP_MS AS open_time)')],
  ['has times in nanoseconds', (lake) => rewrite(lake, '* REPLACE (open_time::TIMESTAMP_NS AS open_time)')],
  ['has a time with a zone', (lake) => rewrite(lake, '* REPLACE (open_time::TIMESTAMPTZ AS open_time)')],
  ['has a further column', (lake) => rewrite(lake, '*, 1 AS further')],
  ['has the columns in another order', (lake) => rewrite(lake, 'count, * EXCLUDE (count)')],
  [
    'has the settings of day files',
    (lake) => {
      edit(lake, '"partition":"month"', '"partition":"day"  ');
    },
  ],
  [
    'belongs to another exchange',
    (lake) => {
      edit(lake, '"venue":"binance"', '"venue":"bxnance"');
    },
  ],
  [
    'has rows from REST',
    (lake) => {
      edit(lake, '"verified":"sidecar"', '"verified":"rest"   ');
    },
  ],
  [
    'was written with --as-published',
    (lake) => {
      edit(lake, '"asPublished":false', '"asPublished":true ');
    },
  ],
  [
    'has settings of CSV',
    (lake) => {
      edit(lake, '"format":"parquet"', '"format":"csv"    ');
    },
  ],
  [
    'has an object of another month',
    (lake) => {
      edit(lake, '2026-10-02.zip","sha', '2026-09-02.zip","sha');
    },
  ],
  [
    'has objects outside of the month that it states',
    (lake) => {
      edit(lake, '"period":"2026-10"', '"period":"2026-09"');
      renameSync(join(lake, FILE), join(lake, `${SERIES}/2026-09.parquet`));
    },
  ],
  [
    'has days that another file of the series holds',
    async (lake) => {
      rmSync(join(lake, SERIES), { recursive: true });
      const day = ['--from', '2026-10-03', '--to', '2026-10-03', '--partition', 'day'];
      await cryptodlOk([...RUN, ...day, ...places(lake)]);
      cpSync(join(sound, FILE), join(lake, FILE));
      // With the same settings, only the days tell.
      edit(lake, '"partition":"month"', '"partition":"day"  ');
    },
  ],
])('a file that %s is not adopted', async (_, harm) => {
  expect(await adopts(harm)).toBe(false);
});

it.each([
  ['was not over', '2026-10-04T08:00:00Z'],
  ['had not begun', '2025-10-06T08:00:00Z'],
])('a file with a day that %s is not adopted', async (_, now) => {
  const lake = scene.newFolder();
  cpSync(join(sound, SERIES), join(lake, SERIES), { recursive: true });
  const { stdout } = await cryptodl(['verify', '--out', lake, '--now', now, '--json', '--fix']);
  expect(stdout).not.toContain('adopted');
});

describe('a file with rows at irregular times', () => {
  const trades = async (to: string): Promise<boolean> => {
    const lake = scene.newFolder();
    const days = ['--from', '2026-10-01', '--to', to, '--partition', 'month'];
    await cryptodlOk(['vision', '--symbols', 'BTCUSDT', '--dataset', 'aggTrades', ...days, ...places(lake)]);
    rmSync(join(lake, '_manifests'), { recursive: true });
    const { stdout } = await cryptodl(['verify', '--out', lake, ...NOW, '--json', '--fix']);
    return stdout.includes('adopted');
  };

  it('is adopted if it has one object', async () => {
    expect(await trades('2026-10-01')).toBe(true);
  });

  it('is not adopted if it has several, because its rows do not tell their object', async () => {
    expect(await trades('2026-10-02')).toBe(false);
  });
});
