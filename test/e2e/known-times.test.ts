/** `cryptodl export tardis`: the open interest of a ticker has the time at which it was known, on both sides of the change of labels. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { cryptodlOk } from '../helpers/cli.js';
import { publishKnownTimes } from '../helpers/known-times.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';
import { sql } from '../helpers/sql.js';

const DAYS = { from: '2026-06-24', to: '2026-06-26' };
const scene = useScene({
  now: '2026-08-10T12:00:00Z',
  archive: [{ ...DAYS, market: 'cm', dataset: 'metrics', symbols: ['BTCUSD_PERP'] }],
  change: (folder) => {
    publishKnownTimes(folder, ['BTCUSDT']);
  },
});

/** Minutes and values of the rows that have an open interest. */
async function tickerOf(lake: string, ...flags: readonly string[]): Promise<{ at: number; value: number }[]> {
  const target = join(scene.newFolder(), 'target');
  await cryptodlOk(['export', 'tardis', '--out', lake, '--target', target, '--now', scene.now, ...flags]);
  return filesBelow(target, '.csv.gz').flatMap((file) => {
    const [header = '', ...lines] = gunzipSync(readFileSync(join(target, file)))
      .toString('utf8')
      .trimEnd()
      .split('\n');
    const [time, interest] = ['timestamp', 'open_interest'].map((name) => header.split(',').indexOf(name));
    return lines.map((line) => {
      const cells = line.split(',');
      return { at: Number(cells[time ?? 0]) / 60e6, value: Number(cells[interest ?? 0]) };
    });
  });
}

it('um: no value is early or late, and the values of the doubled label are left out', async () => {
  const { lake } = await scene.vision(
    `-m um --dataset metrics -s BTCUSDT --from ${DAYS.from} --to ${DAYS.to}`,
  );
  const rows = await tickerOf(lake);
  expect(rows.filter(({ at, value }) => Math.floor(value / 100) !== at)).toEqual([]);
  const change = Date.UTC(2026, 5, 25) / 60_000;
  const known = Array.from({ length: 3 * 288 }, (_, index) => change - 1440 + (index + 1) * 5);
  expect(rows.map(({ at }) => at)).toEqual(known.filter((at) => at !== change && at !== change + 5));
  const day = await tickerOf(lake, '--from', '2026-06-26', '--to', '2026-06-26');
  expect(day.map(({ at }) => at)).toEqual(
    Array.from({ length: 288 }, (_, index) => change + 1440 + index * 5),
  );
});

it('cm: values are known five minutes after their labels', async () => {
  const { lake } = await scene.vision(
    `-m cm --dataset metrics -s BTCUSD_PERP --from ${DAYS.from} --to ${DAYS.to}`,
  );
  const labels = await sql(
    `SELECT epoch(create_time)::INTEGER // 60 + 5 AS at, sum_open_interest AS value FROM '${lake}/binance/cm/metrics/**/*.parquet' ORDER BY ALL`,
  );
  expect(await tickerOf(lake)).toEqual(labels);
});
