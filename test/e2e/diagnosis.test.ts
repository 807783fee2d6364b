/** What a run says about its own speed: waits, refusals, retries, and the flag to change. */
import { afterAll, describe, expect, it } from 'vitest';
import { scratchFolder } from '../helpers/folders.js';
import { metricsScene } from '../helpers/metrics-scene.js';

const scratch = scratchFolder();

describe('metrics --concurrency', () => {
  const scene = metricsScene(scratch, { symbols: [{ symbol: 'BTCUSDT', host: 'fapi', fundingHours: 8 }] });
  afterAll(async () => (await scene).close());

  const TOO_MANY = /^warning: --concurrency .*$/gm;

  it.each<[readonly string[], string[]]>([
    [['--concurrency', '20'], []],
    [
      ['--concurrency', '21'],
      [
        'warning: --concurrency 21: more than 20 series in flight gain nothing at REST, which counts requests per minute, and may get this address refused',
      ],
    ],
    [['--concurrency', '21', '--join', 'archive'], []],
    [['--concurrency', 'auto'], []],
  ])('warns above 20, the archive apart: %s', async (flags, warnings) => {
    const what = ['--symbols', 'BTCUSDT', '--dataset', 'fundingRate', '--days', '1', '--dry-run'];
    const { stderr } = await (await scene).run(['metrics', ...what, ...flags]);
    expect(stderr.match(TOO_MANY) ?? []).toEqual(warnings);
  });
});
