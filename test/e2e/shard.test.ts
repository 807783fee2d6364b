/** `--shard i/n`: several runs that share one selection. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { argv, cryptodl, cryptodlOk } from '../helpers/cli.js';
import { filesBelow, parquetDigests } from '../helpers/lake.js';
import { isListing, isZip, useScene } from '../helpers/scene.js';

const days = { from: '2026-11-18', to: '2026-11-20' };
const symbols = ['BTCUSDT', 'ETHUSDT', 'SOLUSDT', 'XRPUSDT', 'ADAUSDT', 'DOTUSDT'];
const scene = useScene({
  archive: [
    { ...days, symbols },
    { ...days, symbols, dataset: 'metrics' },
  ],
});
const SELECTION = '--interval 1h --dataset klines,metrics --symbols all --days 2';

const place = (): string[] => ['--archive-url', scene.archive.url];

/** The folders of the series of a lake. */
function seriesIn(lake: string): string[] {
  const ofFile = (path: string): string => path.slice(0, path.lastIndexOf('/'));
  return [...new Set(filesBelow(join(lake, 'binance'), '.parquet').map(ofFile))].sort();
}

/** The digest of each file of data, by its path in the lake. */
function digestsOf(lake: string): Record<string, string> {
  const files = filesBelow(lake, '').filter((path) => /^(binance|data)\//.test(path));
  const digest = (path: string): string =>
    createHash('sha256')
      .update(readFileSync(join(lake, path)))
      .digest('hex');
  return Object.fromEntries(files.map((path) => [path, digest(path)]));
}

describe('shards of one selection', () => {
  it('have together the series of one run, each of them once, and request nothing of other series', async () => {
    const whole = seriesIn((await scene.vision(SELECTION)).lake);
    expect(whole).toHaveLength(12);
    const found: string[] = [];
    for (const shard of ['0/3', '1/3', '2/3']) {
      scene.reset();
      const run = await scene.vision(`${SELECTION} --shard ${shard}`);
      expect([run.code, run.stderr]).toEqual([0, expect.stringMatching(/shard {6}\d\/3\n/)]);
      const own = seriesIn(run.lake);
      expect(run.stderr).toContain(`klines, metrics 1h, shard ${shard} in `);
      const asked = scene.archive.requests.filter(
        (path) => isZip(path) || (isListing(path) && path.includes('USDT')),
      );
      const names = (path: string): boolean =>
        own.some((folder) => {
          const [dataset = '', symbol = ''] = [/um\/(\w+)/, /symbol=(\w+)/].map(
            (part) => part.exec(folder)?.[1] ?? '',
          );
          return decodeURIComponent(path).includes(`${dataset}/${symbol}/`);
        });
      expect(asked.length).toBeGreaterThan(0);
      expect(asked.filter((path) => !names(path))).toEqual([]);
      found.push(...own);
    }
    expect(found.sort()).toEqual(whole);
  });

  it.each(['parquet', 'csv', 'zip'])('are joined by a copy, which verify proves (%s)', async (format) => {
    const flags = `${SELECTION} --format ${format}`;
    const whole = (await scene.vision(flags)).lake;
    const joined = (await scene.vision(`${flags} --shard 0/2`)).lake;
    const other = (await scene.vision(`${flags} --shard 1/2`)).lake;
    execFileSync('cp', ['-rn', `${other}/.`, joined]);
    expect(await cryptodl(['verify', '--deep', '--out', joined])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^12 series, \d+ files, .*: all sound\n/) as string,
    });
    expect(digestsOf(joined)).toEqual(digestsOf(whole));
    // The joined lake continues like any other.
    scene.reset();
    expect((await scene.vision(flags, { lake: relative(scene.scratch, joined) })).code).toBe(0);
    expect(scene.archive.objectRequests()).toEqual([]);
  });

  it('are joined again by a copy of the changed files', async () => {
    const [first, both] = ['--from 2026-11-18 --to 2026-11-19', '--from 2026-11-18 --to 2026-11-20'];
    const selection = '--interval 1h --symbols all';
    const whole = (await scene.vision(`${selection} ${both}`)).lake;
    const joined = (await scene.vision(`${selection} ${first} --shard 0/2`)).lake;
    const other = (await scene.vision(`${selection} ${first} --shard 1/2`)).lake;
    execFileSync('cp', ['-rn', `${other}/.`, joined]);
    for (const [lake, shard] of [
      [joined, '0/2'],
      [other, '1/2'],
    ] as const)
      await scene.vision(`${selection} ${both} --shard ${shard}`, { lake: relative(scene.scratch, lake) });
    execFileSync('cp', ['-ru', `${other}/.`, joined]);
    expect((await cryptodl(['verify', '--deep', '--out', joined])).code).toBe(0);
    expect(await parquetDigests(joined)).toEqual(await parquetDigests(whole));
  });

  it('are named in the summary, in the record of the run and in the failure report', async () => {
    scene.refuse((path) => path.endsWith('.zip'), 400);
    const run = await scene.vision(`${SELECTION} --shard 1/3 --json`);
    expect(run.summary).toMatchObject({ shard: '1/3' });
    const [record = ''] = readdirSync(join(run.lake, '.cryptodl/runs'));
    const { options } = JSON.parse(readFileSync(join(run.lake, '.cryptodl/runs', record), 'utf8')) as {
      options: object;
    };
    expect(options).toMatchObject({ shard: ['1/3'] });
    const [report = ''] = readdirSync(join(run.lake, '_failures'));
    const [header = ''] = readFileSync(join(run.lake, '_failures', report), 'utf8').split('\n');
    expect(JSON.parse(header)).toMatchObject({ options: { shard: ['1/3'] } });
  });
});

describe('--shard with a lake', () => {
  const lake = 'held';
  const shards = ['0/3', '1/3', '2/3'];

  it('continues, repairs, verifies and covers only the series of the shard', async () => {
    const { lake: out } = await scene.vision('--interval 1h --symbols all --days 2', { lake });
    const seen: Record<string, number> = { vision: 0, verify: 0, coverage: 0, repair: 0 };
    for (const shard of shards) {
      const plan = await scene.vision(`--days 3 --shard ${shard} --dry-run --json`, { lake });
      seen['vision'] = (seen['vision'] ?? 0) + plan.events.filter(({ action }) => action === 'fetch').length;
      const verified = await cryptodl(['verify', '--out', out, '--shard', shard, '--json']);
      seen['verify'] = (seen['verify'] ?? 0) + Number(verified.events.at(-1)?.['series']);
      const covered = await cryptodl(['coverage', '--out', out, '--shard', shard, '--json']);
      seen['coverage'] =
        (seen['coverage'] ?? 0) + covered.events.filter(({ event }) => event === 'series').length;
      const repaired = await cryptodl(
        argv`repair --out ${out} --shard ${shard} --dry-run --now ${scene.now}`,
      );
      const [, number = ''] =
        /nothing is missing in the (\d+) series of the shard/.exec(repaired.stderr) ?? [];
      seen['repair'] = (seen['repair'] ?? 0) + Number(number);
      expect([verified.code, covered.code, repaired.code]).toEqual([0, 0, 0]);
    }
    expect(seen).toEqual({ vision: 6, verify: 6, coverage: 6, repair: 6 });
  });

  it('does not read the manifests of other shards', async () => {
    const { lake: out } = await scene.vision('--interval 1h --symbols BTCUSDT,ETHUSDT --days 2');
    // Both series are in shard 1/2.
    const [manifest = ''] = filesBelow(join(out, '_manifests'), '').filter((path) =>
      path.includes('ETHUSDT'),
    );
    writeFileSync(join(out, '_manifests', manifest), 'damaged\n');
    const codes: number[] = [];
    for (const shard of ['0/2', '1/2']) {
      const { code } = await cryptodl(
        argv`vision --out ${out} --shard ${shard} --now ${scene.now} ${place()}`,
      );
      codes.push(code ?? -1);
    }
    expect(codes).toEqual([0, 1]);
  });
});

it('--shard of run is the shard of all its jobs', async () => {
  const cwd = scene.newFolder();
  const job = 'verb: vision, symbols: all, interval: 1h, days: 1';
  writeFileSync(join(cwd, 'jobs.yaml'), `jobs:\n  bars: { ${job} }\n  open: { ${job}, dataset: metrics }\n`);
  const keys: string[] = [];
  for (const shard of ['0/2', '1/2']) {
    const { stdout } = await cryptodlOk(
      argv`run jobs.yaml --dry-run --shard ${shard} --now ${scene.now} --archive-url ${scene.archive.url}`,
      { cwd },
    );
    keys.push(...stdout.split('\n').filter((line) => line.startsWith('fetch')));
  }
  expect(keys.length).toBe(12);
  expect(new Set(keys).size).toBe(12);
});
