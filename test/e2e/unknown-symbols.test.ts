/** Names, patterns and intervals that the archive, a dataset or the lake does not have: one rule for all commands. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { useScene } from '../helpers/scene.js';

const DAY = { from: '2026-11-20', to: '2026-11-20' };
const scene = useScene({
  archive: [
    { ...DAY, symbols: ['BTCUSDT', 'ETHUSDT', 'T00USDT'] },
    { ...DAY, interval: '4h', symbols: ['ETHUSDT'] },
    { ...DAY, dataset: 'metrics' },
  ],
});
const cwd = scene.scratch;
const NOW = '2026-11-21T12:00:00Z';
let place: string[];

beforeAll(() => {
  place = ['--archive-url', scene.archive.url, '--now', NOW];
});

/** A dry run of one day. */
function plan(...args: string[]): Promise<CliResult> {
  return cryptodl(['vision', '--interval', '1h', '--days', '1', '--dry-run', ...args, ...place], { cwd });
}

/** `fetch BTCUSDT`, in the order of the plan. */
function planned({ stdout }: CliResult): string[] {
  return [...stdout.matchAll(/^(\w+)\t.*\/(\w+)-[^/]*\.zip(?:\tbars)?$/gm)].map(
    ([, kind, name]) => `${kind} ${name}`,
  );
}

const NO_NOPE = 'cryptodl: the archive has no NOPE in um klines\n';

describe('a name that the archive does not have', () => {
  it.each([['NOPE'], ['BTCUSDT,NOPE'], ['T00*,NOPE'], ['@nope.txt']])('%s is refused', async (symbols) => {
    writeFileSync(join(cwd, 'nope.txt'), 'BTCUSDT\nNOPE\n');
    const { code, stderr } = await plan('--symbols', symbols);
    expect([code, stderr]).toEqual([2, expect.stringContaining(NO_NOPE)]);
  });

  it('is left out by --skip-unknown, with a warning', async () => {
    for (const symbols of ['NOPE,BTCUSDT', 'NOPE,BTC*', '@nope.txt']) {
      const result = await plan('--symbols', symbols, '--skip-unknown');
      expect([result.code, planned(result)]).toEqual([0, ['fetch BTCUSDT']]);
      expect(result.stderr).toContain('warning: the archive has no NOPE in um klines: left out\n');
    }
  });

  it('is treated in the same way by list and audit', async () => {
    const symbols = ['--symbols', 'BTCUSDT,NOPE'];
    for (const verb of [
      ['list', 'symbols'],
      ['list', 'periods', '--interval', '1h'],
      ['audit', '--interval', '1h'],
    ]) {
      const { code, stderr } = await cryptodl([...verb, ...symbols, ...place], { cwd });
      expect([code, stderr]).toEqual([2, expect.stringContaining('the archive has no NOPE in um klines')]);
    }
    const listed = await cryptodlOk(['list', 'symbols', ...symbols, '--skip-unknown', ...place], { cwd });
    expect(listed.stdout).toBe('BTCUSDT\n');
    expect(listed.stderr).toContain('warning: the archive has no NOPE in um klines 1m: left out\n');
  });
});

describe('a name that another dataset has', () => {
  it('is absent, and its datasets are named', async () => {
    for (const dataset of ['metrics', 'metrics,klines']) {
      scene.archive.requests.length = 0;
      const result = await plan('--dataset', dataset, '--symbols', 'BTCUSDT,ETHUSDT');
      expect(result.code).toBe(0);
      expect(planned(result)).toContain('absent ETHUSDT');
      expect(planned(result)).toContain('fetch BTCUSDT');
      expect(result.stderr).toContain('  lacking    um metrics has no ETHUSDT');
      // The symbols of klines are listed once.
      const listings = scene.archive.requests.filter((path) =>
        path.endsWith('prefix=data/futures/um/daily/klines/'),
      );
      expect(listings.length).toBe(1);
    }
  });

  it('is refused with the name of its dataset if nothing else is selected', async () => {
    const { code, stderr } = await plan('--dataset', 'metrics', '--symbols', 'ETHUSDT');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('cryptodl: the archive has no ETHUSDT in um metrics\n'),
    ]);
  });
});

it('an interval that a series never had is absent', async () => {
  const days = ['--from', '2026-11-20', '--to', '2026-11-20'];
  const { code, stderr } = await cryptodl(
    ['vision', '--interval', '4h', '--symbols', 'BTCUSDT,ETHUSDT', ...days, ...place, ...FAST],
    { cwd },
  );
  expect([code, stderr]).toEqual([0, expect.stringMatching(/1 ok, 1 absent[^]*klines\/BTCUSDT\/4h/)]);
});

describe('a name that the lake does not have', () => {
  it.each([['verify'], ['repair'], ['coverage']])(
    'is refused by %s, and left out by --skip-unknown',
    async (verb) => {
      const lake = join(cwd, 'lake');
      const bars = ['--interval', '1h', '--days', '1', '--symbols', 'BTCUSDT', '--out', lake];
      await cryptodlOk(['vision', ...bars, ...place, ...FAST]);
      const online = verb === 'repair' ? place : ['--now', NOW];
      const command = [verb, '--out', lake, '--symbols', 'BTCUSDT,NOPE,!X*', ...online];
      const refused = await cryptodl(command);
      expect([refused.code, refused.stderr]).toEqual([
        2,
        expect.stringContaining(`cryptodl: ${lake} has no NOPE in um klines 1h\n`),
      ]);
      const { stderr } = await cryptodlOk([...command, '--skip-unknown']);
      expect(stderr).toContain(`warning: ${lake} has no NOPE in um klines 1h: left out\n`);
      expect(stderr).toContain('warning: --symbols !X* matches none of the 1 symbols of um klines 1h\n');
    },
  );
});
