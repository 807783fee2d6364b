/** `cryptodl remove`: series leave their orders and the lake; nothing else does, and a removal that was killed can be repeated. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/model/clock.js';
import { acquireLock } from '../../src/lake/lock.js';
import { cryptodl } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-20', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT'] }],
  flags: '--interval 1h',
});
const ETH = 'binance/um/klines/interval=1h/symbol=ETHUSDT';
const ETH_MANIFEST = `_manifests/${ETH}.jsonl`;

const remove = (lake: string, ...flags: string[]) => cryptodl(['remove', '--out', lake, ...flags]);

interface Order {
  readonly id: string;
  readonly symbols: readonly string[];
  readonly words: readonly string[];
}

function ordersOf(lake: string): Order[] {
  const folder = join(lake, '.cryptodl/orders');
  return readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Order);
}

/** Data, manifests and orders, with their bytes. */
const contentOf = (lake: string): Map<string, string> =>
  new Map(
    filesBelow(lake)
      .filter((path) => /^(binance|data|_manifests|\.cryptodl\/orders)\//.test(path))
      .map((path) => [path, readFileSync(join(lake, path), 'latin1')]),
  );

describe('a dry run', () => {
  it('prints what would go and the command that does it, and changes nothing', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 3']);
    const before = contentOf(lake);
    const { code, stdout, stderr } = await remove(lake, '--symbols', 'ETHUSDT');
    expect(code).toBe(0);
    const [order] = ordersOf(lake);
    expect(stdout.split('\n')).toEqual([
      `order\t${order?.id} um klines 1h\tETHUSDT`,
      expect.stringMatching(/^series\tum klines 1h ETHUSDT\t1 file, [\d.]+ k?B, its manifest$/) as string,
      '',
    ]);
    expect(stderr).toContain('1 order, 1 series, 2 files');
    expect(stderr).toContain(`next  cryptodl remove --out ${lake} --symbols ETHUSDT --yes`);
    expect(contentOf(lake)).toEqual(before);
  });

  it.each([
    [[], 'remove needs a selection'],
    [['--order', '0123456789abcdef'], 'the lake has no such order'],
    [['--order', '0123456789abcdef', '--symbols', 'BTCUSDT'], 'takes no selection of series'],
    [['--symbols', 'XRPUSDT'], 'has no XRPUSDT'],
  ])('refuses %j', async (flags, text) => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT --days 1'], 'refusals');
    const { code, stderr } = await remove(lake, '--yes', ...flags);
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
  });

  it('refuses a lake in a bucket', async () => {
    const { code, stderr } = await remove('s3://bucket/lake', '--symbols', 'BTCUSDT');
    expect([code, stderr]).toEqual([2, expect.stringContaining('takes a local folder, and no bucket')]);
  });
});

describe('--yes', () => {
  it('removes a series, keeps the order of the other symbols, and leaves a sound lake', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 3']);
    const before = contentOf(lake);
    const { code, stderr } = await remove(lake, '--symbols', 'ETHUSDT', '--yes');
    expect([code, stderr]).toEqual([0, expect.stringContaining('removed')]);
    expect(ordersOf(lake)).toMatchObject([{ symbols: ['BTCUSDT'], words: ['BTCUSDT'] }]);
    const ofBtc = (content: Map<string, string>) => [...content].filter(([path]) => path.includes('BTCUSDT'));
    const after = contentOf(lake);
    expect(ofBtc(after)).toEqual(ofBtc(before));
    expect([...after.keys()].filter((path) => path.includes('ETHUSDT'))).toEqual([]);
    expect(existsSync(join(lake, ETH))).toBe(false);
    expect((await cryptodl(['verify', '--out', lake])).stderr).toContain('all sound');
    expect((await cryptodl(['check', '--out', lake, '--now', scene.now])).code).toBe(0);
    const again = await scene.vision([], { lake: lake.slice(lake.lastIndexOf('/') + 1), sceneFlags: '' });
    expect(again.stderr).not.toContain('ETHUSDT');
    expect(existsSync(join(lake, ETH))).toBe(false);
  });

  it('excludes a symbol from the globs of an order, so that a run without symbols does not bring it back', async () => {
    const lake = await scene.lakeOf([['--symbols', '*USDT', '--days', '2']]);
    await remove(lake, '--symbols', 'ETHUSDT', '--yes');
    expect(ordersOf(lake)).toMatchObject([{ words: ['*USDT', '!ETHUSDT'] }]);
  });

  it('removes an order without symbols, and says that runs may select them again', async () => {
    const lake = await scene.lakeOf([['--symbols', '*USDT', '--days', '2']]);
    const { stderr } = await remove(lake, '--symbols', 'all', '--yes');
    expect(stderr).toContain('a run whose --symbols select them downloads them again');
    expect(ordersOf(lake)).toEqual([]);
    expect([...contentOf(lake).keys()]).toEqual([]);
  });

  it('keeps the orders of another exchange', async () => {
    const lake = await scene.lakeOf(['--symbols ETHUSDT --days 2']);
    const other = { ...ordersOf(lake)[0], id: '0123456789abcdef', exchange: 'other' };
    writeFileSync(join(lake, '.cryptodl/orders', `${other.id}.json`), JSON.stringify(other));
    expect((await remove(lake, '--symbols', 'ETHUSDT', '--yes')).code).toBe(0);
    expect(ordersOf(lake)).toEqual([other]);
  });

  it('drops an order by its id, and keeps the data', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT --days 2', '--symbols ETHUSDT --days 2']);
    const eth = ordersOf(lake).find(({ symbols }) => symbols.includes('ETHUSDT'));
    const data = [...contentOf(lake).keys()].filter((path) => !path.startsWith('.cryptodl'));
    const { code, stdout } = await remove(lake, '--order', eth?.id ?? '', '--yes');
    expect([code, stdout]).toEqual([0, `order\t${eth?.id} um klines 1h\tthe whole order\n`]);
    expect(ordersOf(lake)).toMatchObject([{ symbols: ['BTCUSDT'] }]);
    expect([...contentOf(lake).keys()].filter((path) => !path.startsWith('.cryptodl'))).toEqual(data);
  });

  it('removes zips with their sidecars', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 2 --format zip']);
    expect((await remove(lake, '--symbols', 'ETHUSDT', '--yes')).code).toBe(0);
    const zips = [...contentOf(lake).keys()].filter((path) => path.startsWith('data/'));
    expect(zips).toHaveLength(4);
    expect(zips.filter((path) => path.includes('ETHUSDT'))).toEqual([]);
  });

  it('keeps files that no manifest line names, and names them', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 2']);
    const foreign = [join(ETH, 'notes.txt'), join(ETH, '2020-01.parquet'), join(ETH, 'mine/a.csv')];
    mkdirSync(join(lake, ETH, 'mine'));
    for (const path of foreign) writeFileSync(join(lake, path), 'mine');
    const { code, stdout } = await remove(lake, '--symbols', 'ETHUSDT', '--yes');
    expect(code).toBe(0);
    for (const name of ['notes.txt', '2020-01.parquet', 'mine'])
      expect(stdout).toContain(`stays\t${ETH}/${name}\t`);
    expect([...contentOf(lake).keys()].filter((path) => path.includes('ETHUSDT'))).toEqual(foreign.sort());
  });

  it.each([
    ['a file', (lake: string) => join(lake, ETH, readdirSync(join(lake, ETH))[0] ?? '')],
    ['the folder', (lake: string) => join(lake, ETH)],
    ['the manifest', (lake: string) => join(lake, ETH_MANIFEST)],
  ])('refuses a link in place of %s, and removes nothing', async (_, placeOf) => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 2']);
    const place = placeOf(lake);
    const elsewhere = join(scene.newFolder(), 'elsewhere');
    renameSync(place, elsewhere);
    symlinkSync(elsewhere, place);
    const before = contentOf(lake);
    const { code, stderr } = await remove(lake, '--symbols', 'ETHUSDT', '--yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining('is a symbolic link')]);
    expect(contentOf(lake)).toEqual(before);
    expect(existsSync(elsewhere)).toBe(true);
  });

  it('refuses a damaged manifest, and removes nothing', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 2']);
    writeFileSync(join(lake, ETH_MANIFEST), '{"broken"\n', { flag: 'a' });
    const before = contentOf(lake);
    const { code, stderr } = await remove(lake, '--symbols', 'ETHUSDT', '--yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining('verify')]);
    expect(contentOf(lake)).toEqual(before);
  });

  it('refuses a locked lake', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT --days 1']);
    const before = contentOf(lake);
    const lock = await acquireLock(join(lake, '.cryptodl'), {
      command: 'test',
      clock: systemClock,
      onLost: () => undefined,
    });
    expect((await remove(lake, '--symbols', 'BTCUSDT', '--yes')).code).toBe(6);
    await lock.release();
    expect(contentOf(lake)).toEqual(before);
  });
});

describe('a removal that did not end', () => {
  it.each([
    ['orders', []],
    ['orders and a file', ['2026-10.parquet']],
    ['orders and all files', ['2026-10.parquet', '2026-11.parquet']],
  ])('is ended by the same command after its %s', async (_, gone) => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 30']);
    const [order] = ordersOf(lake);
    const path = join(lake, '.cryptodl/orders', `${order?.id}.json`);
    writeFileSync(path, JSON.stringify({ ...order, words: ['BTCUSDT'], symbols: ['BTCUSDT'] }));
    for (const name of gone) rmSync(join(lake, ETH, name));
    expect((await remove(lake, '--symbols', 'ETHUSDT', '--yes')).code).toBe(0);
    expect([...contentOf(lake).keys()].filter((one) => one.includes('ETHUSDT'))).toEqual([]);
    expect((await cryptodl(['verify', '--out', lake])).stderr).toContain('all sound');
  });

  it('has removed no data if the orders cannot be changed', async () => {
    const lake = await scene.lakeOf(['--symbols BTCUSDT,ETHUSDT --days 2']);
    const orders = join(lake, '.cryptodl/orders');
    const saved = join(scene.newFolder(), 'orders');
    renameSync(orders, saved);
    writeFileSync(orders, '');
    const before = [...contentOf(lake).keys()];
    expect((await remove(lake, '--symbols', 'ETHUSDT', '--yes')).code).not.toBe(0);
    expect([...contentOf(lake).keys()]).toEqual(before);
    rmSync(orders);
    renameSync(saved, orders);
    expect((await remove(lake, '--symbols', 'ETHUSDT', '--yes')).code).toBe(0);
    expect([...contentOf(lake).keys()].filter((path) => path.includes('ETHUSDT'))).toEqual([]);
  });
});
