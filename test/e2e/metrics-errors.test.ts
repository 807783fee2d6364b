/** `cryptodl metrics` when it is asked for the wrong thing, or answered with one. */
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { publishMetrics } from '../helpers/metrics-archive.js';
import {
  closing,
  daysBetween,
  joinedScene,
  metricsScene,
  NOW,
  rowsOf,
  statisticsOf,
} from '../helpers/metrics-scene.js';
import type { MetricsScene, SceneOptions } from '../helpers/metrics-scene.js';
import { apiError, json, serverError } from '../helpers/rest-venue-answers.js';
import type { Asked, VenueSymbol } from '../helpers/rest-venue-types.js';

const scratch = scratchFolder();
const BTC: VenueSymbol = { symbol: 'BTCUSDT', host: 'fapi' };
const OLD: VenueSymbol = { symbol: 'OLDUSDT', host: 'fapi', to: Date.parse('2026-10-01') };
const SYMBOLS: readonly VenueSymbol[] = [
  BTC,
  { symbol: 'ETHUSDT', host: 'fapi' },
  { symbol: '币安人生USDT', host: 'fapi', status: 'PENDING_TRADING', contractType: '' },
  OLD,
  { symbol: 'BTCUSD_PERP', host: 'dapi' },
  { symbol: 'BTCUSD_261225', host: 'dapi', contractType: 'CURRENT_QUARTER' },
];

const scene = (more: Partial<SceneOptions> = {}): Promise<MetricsScene> =>
  closing(metricsScene(scratch, { symbols: SYMBOLS, ...more }));
/** With an archive that has metrics of the day before. */
async function sceneWithArchive(more: Partial<SceneOptions> = {}): Promise<MetricsScene> {
  const opened = await closing(joinedScene(scratch, { symbols: SYMBOLS, ...more }));
  for (const symbol of [BTC, OLD]) publishMetrics(opened.folder, symbol, Date.parse('2026-09-20'));
  return opened;
}

describe('a mistake', () => {
  it.each([
    [['--dataset', 'klines', '--symbols', 'BTCUSDT'], 'no dataset "klines" of REST', 'list datasets'],
    [['--symbols', 'BTCUSTD'], 'REST has no BTCUSTD in um', 'BTCUSDT?'],
    [['--market', 'spot', '--symbols', 'BTCUSDT'], 'spot has no dataset', 'list datasets'],
    [
      ['--market', 'cm', '--dataset', 'basis', '--symbols', 'BTCUSD_261225'],
      'REST has no selected dataset of BTCUSD_261225',
      'perpetual contracts',
    ],
    [['--symbols', 'BTCUSDT', '--format', 'zip'], 'REST has none', '--format parquet'],
    [[], 'holds no series', '--symbols BTCUSDT,ETHUSDT'],
  ])('%j is answered with the right value', async (words, what, instead) => {
    const { run, lake } = await scene();
    const result = await run(['metrics', ...words]);
    expect([result.code, result.stderr]).toEqual([2, expect.stringContaining(what)]);
    expect(result.stderr).toContain(instead);
    expect(filesBelow(scratch, '.parquet').filter((file) => file.startsWith(lake))).toEqual([]);
  });
});

describe('a symbol that is not traded any more', () => {
  it('is said to be so, and the others are brought', async () => {
    const { run, venue } = await sceneWithArchive();
    const result = await run(['metrics', '--symbols', 'BTCUSDT,OLDUSDT', '--days', '1']);
    expect(result.code).toBe(0);
    expect(result.stderr).toContain('delisted   OLDUSDT: not traded any more');
    expect(result.stderr).toContain('cryptodl vision --market um --dataset metrics,fundingRate');
    expect(venue.log.filter(({ query }) => query.get('symbol') === 'OLDUSDT')).toEqual([]);
  });

  it('alone is a usage error', async () => {
    const { run } = await sceneWithArchive();
    const result = await run(['metrics', '--symbols', 'OLDUSDT', '--days', '1']);
    expect([result.code, result.stderr]).toEqual([2, expect.stringContaining('REST has no OLDUSDT in um')]);
  });
});

describe('a place that the exchange does not serve', () => {
  it('is reported, with the alternatives from there; each host is asked once or twice', async () => {
    const { run, venue } = await sceneWithArchive({ restricted: ['fapi'] });
    const result = await run(['metrics', '--symbols', 'BTCUSDT', '--days', '2']);
    expect(result.code).toBe(4);
    expect(result.stderr).toContain('it does not serve the location of this IP address');
    expect(result.stderr).toContain('cryptodl vision');
    expect(result.stderr).toContain('location-restricted');
    expect(venue.log.length).toBe(1);
  });
});

it('without lists of symbols their names are not called wrong', async () => {
  // Neither the exchange, which does not serve our place, nor an archive that is not there.
  const { run } = await scene({ restricted: ['fapi'] });
  const result = await run(['metrics', '--symbols', 'BTCUSDT', '--days', '1', '--max-wait', '1s']);
  expect([result.code, result.stderr]).toEqual([1, expect.stringContaining('does not serve the location')]);
  expect(result.stderr).not.toContain('REST has no BTCUSDT');
});

describe('requests that failed', () => {
  it('is listed in the failure report, and retry brings it', async () => {
    let isDown = true;
    const { run, lake } = await scene({
      disturb: ({ query, path }) =>
        isDown && path.includes('openInterestHist') && query.get('symbol') === 'ETHUSDT'
          ? serverError(503)
          : undefined,
    });
    const line = ['metrics', '--dataset', 'openInterestHist', '--symbols', 'BTCUSDT,ETHUSDT', '--days', '2'];
    const first = await run([...line, '--retries', '0']);
    expect([first.code, first.stderr]).toEqual([3, expect.stringContaining('2 ok, 2 failed')]);
    expect(first.stderr).toContain('next       cryptodl retry');
    isDown = false;
    const [report = ''] = filesBelow(join(lake, '_failures'));
    const second = await run(['retry', join(lake, '_failures', report)]);
    expect([second.code, second.stderr]).toEqual([0, expect.stringContaining('2 ok')]);
    const rows = await rowsOf(lake, 'um/openInterestHist/interval=5m/symbol=ETHUSDT');
    const eth: VenueSymbol = { symbol: 'ETHUSDT', host: 'fapi' };
    expect(rows.map((row) => [(row['timestamp'] as Date).getTime(), row['sum_open_interest']])).toEqual(
      statisticsOf('openInterestHist', 'sumOpenInterest', eth, daysBetween('2026-11-19', '2026-11-21')),
    );
  });

  it.each([
    ['an empty answer', json('[]')],
    ['a failed request', serverError(503)],
  ])(
    '%s is no evidence: the order lacks its days, also once REST keeps them no longer',
    async (_, answer) => {
      let isDisturbed = true;
      const disturb = ({ path }: Asked) =>
        isDisturbed && path.includes('openInterestHist') ? answer : undefined;
      const { run, lake, setNow } = await scene({ disturb });
      const line = 'metrics --dataset openInterestHist --symbols ETHUSDT --from 2026-11-01 --retries 0'.split(
        ' ',
      );
      const checked = async (now: string): Promise<unknown> => {
        setNow(now);
        await run(line);
        return (await cryptodl(['check', '--out', lake, '--now', now, '--json'])).events[0];
      };
      expect(await checked(NOW)).toMatchObject({ verdict: 'incomplete', orders: [{ percent: 0 }] });
      isDisturbed = false;
      // Also the days that came due while no run asked for them.
      const lost = { missing: { rows: 63 * 288 } };
      expect(await checked('2027-02-01T08:00:00.000Z')).toMatchObject({ exitCode: 4, orders: [lost] });
    },
  );

  it('a symbol that the routes do not know is a failure by name, the others are brought', async () => {
    const { run } = await scene({
      disturb: ({ query }) =>
        query.get('symbol') === 'ETHUSDT' ? apiError(-1121, 'Invalid symbol.') : undefined,
    });
    const result = await run(
      'metrics --dataset openInterestHist --symbols BTCUSDT,ETHUSDT --days 1'.split(' '),
    );
    expect([result.code, result.stderr]).toEqual([4, expect.stringContaining('1 ok, 1 failed')]);
    expect(result.stderr).toContain('symbol-unknown');
  });

  it('days before the wall are absent, told once with where they are', async () => {
    const { run, venue } = await scene();
    const result = await run('metrics --dataset openInterestHist --symbols BTCUSDT --days 40'.split(' '));
    expect([result.code, result.stderr]).toEqual([0, expect.stringContaining('29 ok, 11 absent')]);
    expect(result.stderr).toContain('11 absent, before-history');
    expect(
      result.stderr.match(/the archive has older days: cryptodl vision --market um --dataset metrics/g),
    ).toHaveLength(1);
    expect(venue.refused).toBe(0);
  });
});
