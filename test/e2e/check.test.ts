/** Orders: what runs were asked for, what later runs fetch of it, and the verdict of `cryptodl check`. */
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl, FAST } from '../helpers/cli.js';
import { hourlyBars, publish } from '../helpers/published.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-01', to: '2026-11-20', symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT', 'HOLEUSDT'] }],
  change: (folder) => {
    const zip = join(folder, 'data/futures/um/daily/klines/HOLEUSDT/1h/HOLEUSDT-1h-2026-11-10.zip');
    for (const path of [zip, `${zip}.CHECKSUM`]) rmSync(path);
  },
  flags: '--interval 1h',
});
const TWO_SYMBOLS = '--symbols BTCUSDT,ETHUSDT --days 7';

interface Verdict {
  readonly verdict: string;
  readonly exitCode: number;
  readonly orders: readonly Readonly<Record<string, unknown>>[];
  readonly lastRun: { readonly fate: string };
  readonly next: string | null;
}

async function check(lake: string, now = scene.now): Promise<Verdict> {
  const { code, stdout } = await cryptodl(['check', '--out', lake, '--now', now, '--json']);
  const verdict = JSON.parse(stdout) as Verdict;
  expect(code).toBe(verdict.exitCode);
  return verdict;
}

/** The flag of a run at noon of a day. */
const at = (day: string): string => `--now ${day}T12:00:00Z`;

describe('a later run', () => {
  it('fetches the days since the last run that are before its own range, and prints their number', async () => {
    const shared = { lake: 'outage' };
    const { lake } = await scene.vision(`${TWO_SYMBOLS} ${at('2026-10-15')}`, shared);
    expect(await check(lake)).toMatchObject({
      verdict: 'behind',
      exitCode: 3,
      orders: [{ first: '2026-10-08', last: null, lacking: 2, behindDays: 35 }],
      next: `cryptodl vision --out ${lake}`,
    });
    const judged = await cryptodl(`coverage --out ${lake} --now ${scene.now} --json --min 99.9`.split(' '));
    expect(judged.code).toBe(4);
    expect(judged.events).toContainEqual(expect.objectContaining({ missing: 35 * 24 }));
    const exact = await scene.vision(`${TWO_SYMBOLS} --exact --dry-run`, shared);
    expect(exact.stdout.split('\n').filter((line) => line.startsWith('fetch'))).toHaveLength(14);
    const unnamed = await scene.vision('--days 7 --dry-run', { ...shared, sceneFlags: '' });
    expect(unnamed.stdout.split('\n').filter((line) => line.startsWith('fetch'))).toHaveLength(74);
    const { stderr } = await scene.vision(TWO_SYMBOLS, shared);
    expect(stderr).toContain('order      60 objects from before 2026-11-14 that an earlier run asked for');
    expect(stderr).toContain('74 ok');
    expect(await check(lake)).toMatchObject({ verdict: 'complete', exitCode: 0, next: null });
  });

  it('is repair for a hole after the last held day, which check names', async () => {
    scene.answer(
      (path) => path.endsWith('BTCUSDT-1h-2026-11-12.zip'),
      (_, response) => response.writeHead(404).end(),
    );
    const { lake } = await scene.vision('--symbols BTCUSDT --from 2026-11-10 --to 2026-11-12');
    scene.reset();
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', next: `cryptodl repair --out ${lake}` });
    const hosts = ['--archive-url', scene.archive.url, '--fapi-url', 'http://127.0.0.1:1'];
    await cryptodl(['repair', '--out', lake, '--now', scene.now, ...FAST, ...hosts]);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', next: null });
  });

  it('leaves an incomplete lake if it ends before its order is written', async () => {
    const shared = { lake: 'unordered' };
    const { lake } = await scene.vision(TWO_SYMBOLS, shared);
    scene.refuse((path) => path.includes('prefix='), 503);
    expect((await scene.vision(`${TWO_SYMBOLS} --retries 0`, shared)).code).not.toBe(2);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', exitCode: 0 });
    const asked = await scene.vision('--symbols SOL* --days 2 --retries 0 --max-wait 1s', shared);
    expect(asked.code).toBe(1);
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3 });
    scene.reset();
    await scene.vision('--symbols SOL* --days 2', shared);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', exitCode: 0 });
    scene.refuse((path) => path.includes('prefix='), 503);
    await scene.vision('--symbols SOL* --days 20 --retries 0 --max-wait 1s', shared);
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3 });
    scene.reset();
    // A run that continues the orders of the lake does not know what the other one was asked for.
    await scene.vision([], { ...shared, sceneFlags: '' });
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3 });
    await scene.vision('--symbols SOL* --days 20', shared);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', exitCode: 0 });
    const id = `${new Date().toISOString().replaceAll(/[-:.]/g, '')}-0123abcd`;
    writeFileSync(join(lake, '.cryptodl/runs', `${id}.start.json`), '');
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3 });
    await scene.vision([], { ...shared, sceneFlags: '' });
    expect(await check(lake)).toMatchObject({ verdict: 'complete', exitCode: 0 });
  });

  it('judges the days of a run that lies before the first one of its order, by a wrong clock', async () => {
    const shared = { lake: 'fast' };
    await scene.vision(`--symbols BTCUSDT --days 1 ${at('2027-02-01')}`, shared);
    scene.refuse(isZip, 503);
    const { lake } = await scene.vision('--symbols BTCUSDT --days 7 --retries 0', shared);
    scene.reset();
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3 });
    await scene.vision('--symbols BTCUSDT --days 7', shared);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', orders: [{ percent: 100 }, {}] });
  });

  it('does not count the files of one format for the order of another', async () => {
    const shared = { lake: 'formats' };
    const { lake } = await scene.vision(TWO_SYMBOLS, shared);
    scene.refuse((path) => isZip(path), 500);
    await scene.vision(`${TWO_SYMBOLS} --format csv --retries 0`, shared);
    scene.reset();
    expect(await check(lake)).toMatchObject({
      verdict: 'incomplete',
      orders: [
        { format: 'parquet', lacking: 0 },
        { format: 'csv', lacking: 2, percent: 0 },
      ],
    });
    const { events } = await cryptodl(['coverage', '--out', lake, '--now', scene.now, '--json']);
    expect(events).toContainEqual(expect.objectContaining({ format: 'csv', held: 0 }));
    await scene.vision([], { ...shared, sceneFlags: '' });
    expect(await check(lake)).toMatchObject({ verdict: 'complete' });
  });

  it('of zips leaves a complete lake, and check says that rows within zips are not counted', async () => {
    const { lake } = await scene.vision(`${TWO_SYMBOLS} --format zip`, { lake: 'zips' });
    const { code, stdout } = await cryptodl(['check', '--out', lake, '--now', scene.now, '--quiet']);
    expect(stdout).toContain('complete: nothing is missing in 2 series of 1 order; the rows within the zips');
    expect(code).toBe(0);
  });

  it('fetches an added symbol from the first day of the order, also if the run names no symbols', async () => {
    const shared = { lake: 'further' };
    const { lake } = await scene.vision(`${TWO_SYMBOLS} --days 20`, shared);
    scene.refuse((path) => isZip(path) && path.includes('SOLUSDT'), 500);
    await scene.vision('--symbols BTCUSDT,ETHUSDT,SOLUSDT --days 2 --retries 0', shared);
    // The lake has no file of the symbol, and the order says what it lacks.
    expect(await check(lake)).toMatchObject({
      verdict: 'incomplete',
      exitCode: 3,
      orders: [{ symbols: ['BTCUSDT', 'ETHUSDT', 'SOLUSDT'], series: 3, lacking: 1, first: '2026-11-01' }],
    });
    scene.reset();
    const { stderr } = await scene.vision([], { ...shared, sceneFlags: '' });
    expect(stderr).toContain('20 ok, 14 skipped');
    expect(await check(lake)).toMatchObject({ verdict: 'complete' });
  });

  it('knows that a symbol of the order was delisted before its first day', async () => {
    const shared = { lake: 'gone' };
    for (const day of ['2026-10-01', '2026-10-02'])
      // A second interval ends too, so the symbol has ended, and not one of its series.
      for (const series of ['1h/GONEUSDT-1h', '1m/GONEUSDT-1m'])
        publish(
          scene.folder,
          `data/futures/um/daily/klines/GONEUSDT/${series}-${day}.zip`,
          hourlyBars([day], 1),
        );
    const { lake } = await scene.vision('--symbols BTCUSDT,GONEUSDT --days 7', shared);
    const complete = { verdict: 'complete', orders: [{ series: 2, lacking: 0, percent: 100 }] };
    expect(await check(lake)).toMatchObject(complete);
    const { stderr } = await scene.vision([], { ...shared, sceneFlags: '' });
    expect(stderr).toContain('7 skipped');
    expect(await check(lake)).toMatchObject(complete);
    const target = join(lake, '..', 'exported');
    const exported = await cryptodl(argv`export csv --require-complete --target ${target} --out ${lake}`);
    expect(exported.code).toBe(0);
    expect((await cryptodl(['bars', '4h', '--out', lake])).code).toBe(0);
    expect(await check(lake)).toMatchObject(complete);
    // The files of another format have the symbol.
    const twice = { lake: 'gone-csv' };
    await scene.vision('--symbols GONEUSDT --from 2026-10-01 --to 2026-10-02', twice);
    const inCsv = await scene.vision('--symbols BTCUSDT,GONEUSDT --days 7 --format csv', twice);
    expect(await check(inCsv.lake)).toMatchObject({ verdict: 'complete' });
  });

  const WHOLE = { verdict: 'complete', orders: [{ first: null, percent: 100 }] };
  const heldOf = async (lake: string, symbol: string): Promise<unknown> =>
    (await cryptodl(argv`coverage --out ${lake} --now ${scene.now} --json`)).events.find(
      (one) => one['symbol'] === symbol,
    )?.['held'];

  it('fetches all days of a symbol that joins an order without a first day', async () => {
    const shared = { lake: 'joins-whole' };
    await scene.vision('--symbols BTCUSDT --to yesterday', shared);
    await scene.vision('--symbols ETHUSDT --days 7', shared);
    const { lake } = await scene.vision('--symbols BTCUSDT,ETHUSDT --days 7', shared);
    expect(await heldOf(lake, 'ETHUSDT')).toBe(51 * 24);
  });

  it('fetches all days for which an order without a first day asks, after a run that was killed while it planned', async () => {
    const shared = { lake: 'killed-whole' };
    await scene.vision('--symbols SOLUSDT --days 7', shared);
    const killed = await scene.vision('--symbols SOLUSDT --to yesterday', {
      ...shared,
      onSpawn: (child) => {
        scene.answer(
          (path) => decodeURIComponent(path).includes('klines/SOLUSDT/1h/'),
          () => child.kill('SIGKILL'),
        );
      },
    });
    scene.reset();
    expect(await check(killed.lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3 });
    await scene.vision([], { ...shared, sceneFlags: '' });
    expect(await check(killed.lake)).toMatchObject(WHOLE);
    expect(await heldOf(killed.lake, 'SOLUSDT')).toBe(51 * 24);
  });

  it('without symbols fetches the first days of an order, which a killed run has not fetched', async () => {
    const shared = { lake: 'start' };
    let served = 0;
    const { lake } = await scene.vision('--symbols BTCUSDT --to yesterday', {
      ...shared,
      onSpawn: (child) => {
        scene.answer(isZip, (request, response, path) => {
          if (path.includes('2026-10-0')) response.writeHead(500).end();
          else if ((served += 1) > 30) child.kill('SIGKILL');
          else scene.archive.serve(request, response);
        });
      },
    });
    scene.reset();
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', orders: [{ first: null, last: null }] });
    expect((await scene.vision('--days 1', { ...shared, sceneFlags: '' })).code).toBe(0);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', orders: [{ percent: 100 }] });
    const count = ['sql', 'SELECT count(*) AS rows FROM um_klines', '--json', '--out', lake];
    expect((await cryptodl(count)).events).toEqual([{ rows: 51 * 24 }]);
    // The archive publishes a day before the first held one. One of seven daily runs looks for such days.
    const key = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2026-09-30.zip';
    publish(scene.folder, key, hourlyBars(['2026-09-30'], 1));
    for (let day = 21; day < 28; day += 1)
      await scene.vision(`--days 1 ${at(`2026-11-${day}`)}`, { ...shared, sceneFlags: '' });
    expect((await cryptodl(count)).events).toEqual([{ rows: 52 * 24 }]);
  });

  it('keeps the format of the order, if it names none', async () => {
    const shared = { lake: 'format' };
    const { lake } = await scene.vision('--symbols BTCUSDT --days 2 --format csv', shared);
    for (const isCopy of [false, true]) {
      // A copy of the data alone has no orders.
      if (isCopy) rmSync(join(lake, '.cryptodl'), { recursive: true });
      await scene.vision('--symbols BTCUSDT --days 2', shared);
      expect(await check(lake)).toMatchObject({ verdict: 'complete', orders: [{ format: 'csv' }] });
    }
  });

  it.each([
    ['with symbols', '--symbols SHORTUSDT --days 7', {}],
    ['without symbols', '', { sceneFlags: '' }],
  ])(
    '%s compares a short day with the listing again after it has left the range',
    async (lake, asked, flags) => {
      const shared = { lake };
      const put = (day: string, hours: number): void => {
        const key = `data/futures/um/daily/klines/SHORTUSDT/1h/SHORTUSDT-1h-${day}.zip`;
        publish(scene.folder, key, hourlyBars([day], 1, { hours }));
      };
      const days = Array.from({ length: 20 }, (_, index) => `2026-11-${String(index + 1).padStart(2, '0')}`);
      for (const day of days) put(day, day === '2026-11-05' ? 8 : 24);
      const first = `--symbols SHORTUSDT --from 2026-11-01 ${at('2026-11-18')}`;
      const { lake: path } = await scene.vision(first, shared);
      expect(await check(path, '2026-11-18T12:00:00Z')).toMatchObject({ verdict: 'incomplete' });
      put('2026-11-05', 24);
      // A day of this age is compared every second day.
      for (const day of ['2026-11-19', '2026-11-20', '2026-11-21'])
        await scene.vision(`${asked} ${at(day)}`.trim(), { ...shared, ...flags });
      expect(await check(path)).toMatchObject({ verdict: 'complete', exitCode: 0 });
    },
  );

  it('leaves no order if its plan is refused', async () => {
    const shared = { lake: 'refused' };
    const { lake } = await scene.vision('--symbols BTCUSDT --days 2', shared);
    expect((await scene.vision('--symbols BTCUSDT --days 40 --max-bytes 1', shared)).code).toBe(2);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', orders: [{ first: '2026-11-19' }] });
  });

  it('begins with the earliest first day of the orders of a symbol', async () => {
    const shared = { lake: 'earliest' };
    scene.refuse((path) => isZip(path), 500);
    await scene.vision('--symbols BTCUSDT,ETHUSDT --days 5 --retries 0', shared);
    scene.reset();
    const { stderr } = await scene.vision('--symbols ETHUSDT,SOLUSDT --days 2', shared);
    expect(stderr).toContain('7 ok');
  });

  it('with an end keeps to its range', async () => {
    const shared = { lake: 'range' };
    scene.refuse((path) => isZip(path), 500);
    await scene.vision('--symbols BTCUSDT --days 5 --retries 0', shared);
    scene.reset();
    const { stderr } = await scene.vision('--symbols BTCUSDT --from 2026-11-18 --to 2026-11-19', shared);
    expect(stderr).toContain('2 ok');
  });

  it('does not extend an order with an end', async () => {
    const shared = { lake: 'closed' };
    const closed = '--symbols BTCUSDT --from 2026-10-03 --to 2026-10-05';
    const { lake } = await scene.vision(closed, shared);
    const { stderr } = await scene.vision('--symbols BTCUSDT --days 2', shared);
    expect(stderr).toContain('2 ok');
    const { orders } = await check(lake);
    expect(new Set(orders.map(({ first, last, lacking }) => JSON.stringify([first, last, lacking])))).toEqual(
      new Set(['["2026-10-03","2026-10-05",0]', '["2026-11-19",null,0]']),
    );
  });

  it('leaves a lake incomplete, and not behind, without the last days of an order with an end', async () => {
    const { lake } = await scene.vision('--symbols BTCUSDT --to 2026-11-25');
    expect(await check(lake, '2026-12-05T12:00:00Z')).toMatchObject({
      verdict: 'incomplete',
      orders: [{ lacking: 1, behindDays: 0 }],
    });
  });
});

describe('the verdict', () => {
  it('is incomplete after the kill of a first load, and `cryptodl runs` shows the killed run', async () => {
    const shared = { lake: 'killed' };
    const zips = new Set<string>();
    const killed = await scene.vision('--symbols BTCUSDT,ETHUSDT,SOLUSDT --days 30 --concurrency 1', {
      ...shared,
      onSpawn: (child) => {
        scene.answer(isZip, (request, response, path) => {
          zips.add(path);
          if (zips.size > 40) child.kill('SIGKILL');
          else scene.archive.serve(request, response);
        });
      },
    });
    expect(killed.signal).toBe('SIGKILL');
    scene.reset();
    const { lake } = killed;
    const verdict = await check(lake);
    expect(verdict).toMatchObject({ verdict: 'incomplete', exitCode: 3, lastRun: { fate: 'killed' } });
    expect(verdict.orders).toMatchObject([{ series: 3, first: '2026-10-22' }]);
    const runs = await cryptodl(['runs', '--out', lake]);
    expect(runs.stdout).toMatch(/^vision, .*: was killed before its end\n/);
    expect((await scene.vision([], { ...shared, sceneFlags: '' })).code).toBe(0);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', lastRun: { fate: 'ended' } });
    // Without the records of ended runs, the killed run is the last one. Its order was written.
    const records = join(lake, '.cryptodl/runs');
    for (const name of readdirSync(records)) if (!name.endsWith('.start.json')) rmSync(join(records, name));
    expect(await check(lake)).toMatchObject({ verdict: 'complete', lastRun: { fate: 'killed' } });
  });

  it('is running during a run', async () => {
    let during: Promise<Verdict> | undefined;
    await scene.vision(TWO_SYMBOLS, {
      lake: 'running',
      onSpawn: (child) => {
        scene.answer(isZip, () => {
          during ??= check(join(scene.scratch, 'running')).finally(() => child.kill('SIGKILL'));
        });
      },
    });
    expect(await during).toMatchObject({ verdict: 'running', exitCode: 3, next: null });
  });

  it('is about the order of a first run that is killed while it plans', async () => {
    const killed = await scene.vision('--symbols SOLUSDT --days 7', {
      onSpawn: (child) => {
        scene.answer(
          (path) => decodeURIComponent(path).includes('klines/SOLUSDT/1h/'),
          () => child.kill('SIGKILL'),
        );
      },
    });
    expect(killed.signal).toBe('SIGKILL');
    const { lake } = killed;
    expect(await check(lake)).toMatchObject({
      verdict: 'incomplete',
      exitCode: 3,
      orders: [{ symbols: ['SOLUSDT'], series: 1, lacking: 1, percent: 0 }],
    });
    // Coverage knows the symbol from its order, although the lake has no file of it. A symbol of no order is unknown.
    const flags = ['--out', lake, '--now', scene.now, '--symbols', 'SOLUSDT', '--min', '99'];
    expect(await cryptodl(['coverage', ...flags, '--json'])).toMatchObject({
      code: 4,
      events: [
        { symbol: 'SOLUSDT', expected: 5, held: 0, missing: 5 },
        { event: 'summary', series: 1, incomplete: 1, leastPercent: 0 },
      ],
    });
    expect((await cryptodl(['coverage', ...flags])).stderr).toContain('--from 2026-11-14 --to 2026-11-18');
    expect(await cryptodl(['coverage', ...flags, '--symbols', 'SOLUSD'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean SOLUSDT?') as string,
    });
  });

  it('has the last run that could not begin, and none with wrong options', async () => {
    const shared = { lake: 'unreachable' };
    const { lake } = await scene.vision(TWO_SYMBOLS, shared);
    const down = await scene.vision(`${TWO_SYMBOLS} --retries 0`, { ...shared, url: 'http://127.0.0.1:1' });
    expect(down.code).toBe(1);
    expect(await check(lake)).toMatchObject({ verdict: 'complete', lastRun: { fate: 'failed' } });
    const { stdout } = await cryptodl(['runs', '--out', lake]);
    expect(stdout).toContain('could not begin: the archive cannot be reached');
    const before = readdirSync(join(lake, '.cryptodl/runs'));
    expect((await scene.vision('--symbols NOSUCHUSDT --days 7', shared)).code).toBe(2);
    expect(readdirSync(join(lake, '.cryptodl/runs'))).toEqual(before);
  });

  it('names the command that fetches what a closed order lacks', async () => {
    const selection = "--symbols '*USDT' --quote USDT --from 2026-11-10 --to 2026-11-11";
    const more = '--format csv --shard 0/2';
    scene.refuse((path) => isZip(path), 500);
    const shared = { lake: 'closed-lacks' };
    const { lake } = await scene.vision(`${selection.replaceAll("'", '')} ${more} --retries 0`, shared);
    const run = `cryptodl vision --market um --dataset klines --interval 1h ${selection} ${more} --out ${lake}`;
    const next = `${run}; cryptodl repair --out ${lake}`;
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', next });
    scene.reset();
    // A run without symbols continues open orders only.
    const { code, stderr } = await scene.vision([], { ...shared, sceneFlags: '' });
    expect([code, stderr]).toEqual([2, expect.stringContaining('holds no series to continue')]);
  });

  it('names REST too for a day that a month lacks, because the archive may have no object of the day', async () => {
    const days = Array.from({ length: 31 }, (_, index) => `2026-10-${String(index + 1).padStart(2, '0')}`);
    const key = 'data/futures/um/monthly/klines/MONTHUSDT/1h/MONTHUSDT-1h-2026-10.zip';
    publish(scene.folder, key, hourlyBars(days.toSpliced(9, 1), 1));
    const flags = '--symbols MONTHUSDT --from 2026-10-01 --to 2026-10-31';
    const { lake } = await scene.vision(flags, { lake: 'month' });
    expect(await check(lake)).toMatchObject({
      orders: [{ missing: { rows: 24 }, mend: ['run', 'repair'] }],
    });
  });

  it('has exit code 4 for a day that the archive lacks in a lake of zips, which have no rows of REST', async () => {
    const { lake } = await scene.vision('--symbols HOLEUSDT --days 20 --format zip', { lake: 'zip-hole' });
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 4, next: null });
  });

  it('has exit code 4 for a gap that neither the archive nor REST has', async () => {
    const { lake } = await scene.vision('--symbols HOLEUSDT --days 20', { lake: 'hole' });
    expect(await check(lake)).toMatchObject({
      verdict: 'incomplete',
      exitCode: 3,
      orders: [{ lacking: 1, missing: { rows: 24, days: 0 }, mend: ['repair'] }],
    });
    const manifest = join(lake, '_manifests/binance/um/klines/interval=1h/symbol=HOLEUSDT.jsonl');
    const hole = readFileSync(manifest, 'utf8').trimEnd().split('\n').at(-1) ?? '';
    const rest = { asked: 1, at: scene.now };
    appendFileSync(manifest, `${JSON.stringify({ ...(JSON.parse(hole) as object), rest })}\n`);
    expect(await check(lake)).toMatchObject({
      verdict: 'incomplete',
      exitCode: 4,
      orders: [{ lacking: 1, missing: { rows: 24, days: 0 }, mend: [] }],
      next: null,
    });
    const { stderr } = await cryptodl(['coverage', '--out', lake, '--now', scene.now]);
    expect(stderr).not.toContain('next ');
  });

  it('expects bars longer than a day once their month must be published', async () => {
    const opens = ['2026-10-05', '2026-10-12', '2026-10-19', '2026-10-26'].map((day) => Date.parse(day));
    const rows = opens.map((open) => `${open},1,2,1,2,5,${open + 7 * 86_400_000 - 1},9,3,1,1,0\n`);
    const key = 'data/futures/um/monthly/klines/WEEKUSDT/1w/WEEKUSDT-1w-2026-10.zip';
    publish(scene.folder, key, rows.join(''));
    const { lake } = await scene.vision('--symbols WEEKUSDT --interval 1w --from 2026-10-01', {
      sceneFlags: '',
    });
    expect(await check(lake)).toMatchObject({
      verdict: 'complete',
      orders: [{ judged: { from: '2026-10-01', to: '2026-10-31' }, missing: { rows: 0, days: 0 } }],
    });
    expect(await check(lake, '2026-12-11T12:00:00Z')).toMatchObject({ verdict: 'behind', exitCode: 3 });
    const early = await scene.vision('--symbols WEEKUSDT --interval 1w --from 2026-11-02', {
      sceneFlags: '',
    });
    expect(await check(early.lake)).toMatchObject({ verdict: 'complete', orders: [{ lacking: 0 }] });
  });

  it('expects no days of the current month with --months, until a run asks for days', async () => {
    const shared = { lake: 'months' };
    const { lake } = await scene.vision('--symbols BTCUSDT --months 1', shared);
    expect(await check(lake)).toMatchObject({
      verdict: 'complete',
      orders: [{ judged: { from: '2026-10-01', to: '2026-10-31' } }],
    });
    expect(await check(lake, '2026-12-03T12:00:00Z')).toMatchObject({
      verdict: 'behind',
      orders: [{ judged: { to: '2026-11-30' } }],
    });
    await scene.vision('--symbols BTCUSDT --days 2', shared);
    await scene.vision('--symbols BTCUSDT --months 1', shared);
    expect(await check(lake)).toMatchObject({
      verdict: 'complete',
      orders: [{ judged: { from: '2026-10-01', to: '2026-11-18' } }],
    });
  });

  it('is incomplete if a file of an order is damaged; without any order, there is no verdict', async () => {
    const { lake } = await scene.vision(TWO_SYMBOLS, { lake: 'foreign' });
    const orders = join(lake, '.cryptodl/orders');
    const [name = ''] = readdirSync(orders);
    await scene.vision('--symbols SOLUSDT --days 3', { lake: 'foreign' });
    writeFileSync(join(orders, name), '{"v":1}');
    expect(await check(lake)).toMatchObject({ verdict: 'incomplete', exitCode: 3, orders: [{ lacking: 0 }] });
    for (const other of readdirSync(orders)) writeFileSync(join(orders, other), '{"v":1}');
    const { code, stderr } = await cryptodl(['check', '--out', lake, '--now', scene.now]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${name} is not an order`) as string]);
    expect(stderr).toContain('has no order, so nothing tells what it should hold');
  });
});
