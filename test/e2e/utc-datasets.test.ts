/** `--timestamps utc` and the terms of the exchange in the files of every dataset of the archive. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { datasetsOf, isArchived } from '../../src/exchange/exchange-spec.js';
import { filesBelow, parquetMetadata } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

type ArchiveSpec = Parameters<typeof makeArchive>[1];

const VENUE = loadBinance();
const MARKETS = ['spot', 'um', 'cm', 'option'] as const;
/** Days on which almost all datasets were published, and days of the others. */
const DAYS = ['2024-03-29', '2024-03-30'] as const;
const OTHER_DAYS: Readonly<Record<string, readonly [string, string]>> = {
  fundingRate: ['2024-03-01', '2024-03-31'],
  EOHSummary: ['2023-10-17', '2023-10-18'],
};

const SELECTIONS = MARKETS.flatMap((market) =>
  datasetsOf(VENUE, market)
    .filter((spec) => isArchived(spec))
    .map(({ name: dataset, columns }) => ({
      market,
      dataset,
      columns,
      days: OTHER_DAYS[dataset] ?? DAYS,
    })),
);

const scene = useScene({
  change: (folder) => {
    for (const { market, dataset, days } of SELECTIONS) {
      const [from, to] = days;
      const cadence = dataset === 'fundingRate' ? 'monthly' : 'daily';
      const spec = {
        market,
        dataset,
        from,
        to,
        cadence,
        interval: '12h',
        rowsPerDay: 5,
        symbols: ['BTCUSDT'],
      };
      makeArchive(folder, spec as ArchiveSpec);
    }
  },
});

async function factsOf(file: string): Promise<{ zones: Record<string, boolean>; terms: string[] }> {
  const { schema, key_value_metadata: entries = [] } = await parquetMetadata(file);
  const zones = schema.flatMap(({ name, logical_type: type }) =>
    type?.type === 'TIMESTAMP' ? [[name, type.isAdjustedToUTC] as const] : [],
  );
  const terms = entries.flatMap(({ key, value }) =>
    key === 'license' || key === 'attribution' ? [`${key}: ${value?.slice(0, 15) ?? ''}`] : [],
  );
  return { zones: Object.fromEntries(zones), terms };
}

it.each(MARKETS)(
  'the files of %s have times with the zone UTC, a license and an attribution',
  async (market) => {
    const selections = SELECTIONS.filter((selection) => selection.market === market);
    const lake = `utc-${market}`;
    for (const days of new Set(selections.map((selection) => selection.days))) {
      const datasets = selections
        .filter((selection) => selection.days === days)
        .map(({ dataset }) => dataset);
      const chosen = ['--market', market, '--dataset', datasets.join(','), '--symbols', 'BTCUSDT'];
      const range = ['--interval', '12h', '--from', days[0], '--to', days[1]];
      const { code, stderr } = await scene.vision([...chosen, ...range, '--timestamps', 'utc'], { lake });
      expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
    }
    for (const { dataset, columns } of selections) {
      const folder = join(scene.scratch, lake, 'binance', market, dataset);
      const files = filesBelow(folder, '.parquet');
      const times = columns.filter(({ type }) => type === 'time' || type === 'datetime');
      expect([dataset, files.length > 0]).toEqual([dataset, true]);
      for (const file of files)
        expect([dataset, await factsOf(join(folder, file))]).toEqual([
          dataset,
          {
            zones: Object.fromEntries(times.map(({ name }) => [name, true])),
            terms: ['license: CC BY-NC-SA 4.0', 'attribution: Binance Vision,'],
          },
        ]);
    }
  },
);
