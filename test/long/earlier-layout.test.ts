/** A lake whose manifests lie in the folders of their series: every verb reads it, and the first run that writes to it moves them. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, cryptodlProcess, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { toEarlierLayout } from '../helpers/earlier-layout.js';
import { filesBelow, parquetDigests } from '../helpers/lake.js';
import { preload } from '../helpers/preload.js';
import { useScene } from '../helpers/scene.js';

const SERIES = ['BTCUSDT', 'ETHUSDT'].map((symbol) => `binance/um/metrics/symbol=${symbol}`);
const [BTC = '', ETH = ''] = SERIES;
const DAYS = ['--from', '2026-10-01', '--to', '2026-10-04'];
const SYMBOLS = ['--dataset', 'metrics', '--symbols', 'BTCUSDT,ETHUSDT'];
const REFUSED = 'data/futures/um/daily/metrics/ETHUSDT/ETHUSDT-metrics-2026-10-04.zip';

const scene = useScene({
  archive: [{ dataset: 'metrics', symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-10-01', to: '2026-10-06' }],
});
const { scratch } = scene;
/** Two series, a report with one failure, and its body in the quarantine. */
const earlier = join(scratch, 'earlier');
const zips = join(scratch, 'zips');

const places = (lake: string): string[] => [
  '--out',
  lake,
  '--archive-url',
  scene.archive.url,
  ...NOW,
  ...FAST,
];
const NOW = ['--now', '2026-10-06T08:00:00Z'];

beforeAll(async () => {
  scene.archive.fault = (path, _request, response) => {
    if (path !== `/${REFUSED}`) return false;
    response.end('no zip');
    return true;
  };
  await cryptodl(['vision', ...SYMBOLS, ...DAYS, ...places(earlier)]);
  scene.archive.fault = undefined;
  await cryptodlOk(['vision', ...SYMBOLS, ...DAYS, '--format', 'zip', ...places(zips)]);
  for (const lake of [earlier, zips]) toEarlierLayout(lake);
});

function copy(of = earlier): string {
  const lake = scene.newFolder();
  cpSync(of, lake, { recursive: true });
  return lake;
}

/** Files of the lake, without the folder of cryptodl. */
function visible(lake: string): string[] {
  return filesBelow(lake).filter((path) => !/^(\.cryptodl|_NOTICE)/.test(path));
}

/** The present places of the files of `earlier`. */
function moved(): string[] {
  return visible(earlier)
    .map((path) => {
      const series = dirname(path);
      if (path.endsWith('/_manifest.jsonl')) return `_manifests/${series}.jsonl`;
      return path.replace(/^(failures|quarantine)/, '_$1');
    })
    .sort();
}

const verify = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['verify', '--out', lake, ...NOW, '--json', ...flags]);
const next = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['vision', ...places(lake), '--json', ...flags]);

function found({ events }: CliResult): string[] {
  return events
    .filter(({ event }) => event === 'finding')
    .map(({ kind, path }) => `${String(kind)} ${String(path)}`)
    .sort();
}

describe('a lake of an earlier version', () => {
  it('has its manifests beside the data', () => {
    expect(visible(earlier)).toEqual([
      ...SERIES.flatMap((path) => [`${path}/2026-10.parquet`, `${path}/_manifest.jsonl`]),
      expect.stringMatching(/^failures\/vision-.*\.jsonl$/),
      `quarantine/${REFUSED}`,
      `quarantine/${REFUSED}.cause`,
    ]);
  });

  it.each<[string, (lake: string) => Promise<CliResult>, (result: CliResult) => void]>([
    [
      'coverage',
      (lake) => cryptodl(['coverage', '--out', lake, ...NOW, '--json']),
      ({ events }) => {
        expect(events.map(({ symbol }) => symbol)).toEqual(expect.arrayContaining(['BTCUSDT', 'ETHUSDT']));
      },
    ],
    [
      'sql',
      (lake) => cryptodl(['sql', 'SELECT count(*) AS n FROM um_metrics', '--json', '--out', lake]),
      ({ events }) => {
        expect(events).toEqual([{ n: 7 * 288 }]);
      },
    ],
    [
      'verify',
      (lake) => verify(lake, '--deep'),
      ({ code, events }) => {
        expect([code, events]).toEqual([
          0,
          [expect.objectContaining({ event: 'summary', series: 2, files: 2 })],
        ]);
      },
    ],
    [
      'a dry run of vision without symbols',
      (lake) => next(lake, '--dry-run'),
      ({ code, stderr }) => {
        expect([code, stderr]).toEqual([0, expect.stringMatching(/to fetch +3 objects/)]);
      },
    ],
    [
      'a dry run of retry',
      (lake) => cryptodl(['retry', join(lake, 'failures', report(lake)), '--dry-run', ...places(lake)]),
      ({ code, stderr }) => {
        expect([code, stderr]).toEqual([0, expect.stringMatching(/to fetch +[12] objects?,/)]);
      },
    ],
  ])('is read by %s, and not changed', async (_, run, check) => {
    const lake = copy();
    const before = visible(lake);
    const folders = ['', ...SERIES].map((path) => join(lake, path));
    for (const folder of folders) chmodSync(folder, 0o555);
    try {
      check(await run(lake));
    } finally {
      for (const folder of folders) chmodSync(folder, 0o755);
    }
    expect(visible(lake)).toEqual(before);
  });

  it.each<[string, (lake: string) => Promise<CliResult>]>([
    [
      'vision with symbols',
      (lake) => next(lake, ...SYMBOLS, ...DAYS.slice(0, 2), '--to', '2026-10-03', '--recheck-days', '0'),
    ],
    ['verify --fix', (lake) => verify(lake, '--fix')],
  ])('is moved by the first run that writes to it: %s', async (_, run) => {
    const lake = copy();
    const digests = await parquetDigests(lake);
    const { code, stderr } = await run(lake);
    expect([code, visible(lake)]).toEqual([0, moved()]);
    expect(stderr).toContain(
      'moved 2 manifests, 1 failure report, 1 quarantined file to _manifests, _failures and _quarantine',
    );
    expect(await parquetDigests(lake)).toEqual(digests);
    for (const path of ['failures', 'quarantine', '.cryptodl/upgrade'])
      expect(existsSync(join(lake, path))).toBe(false);
    expect((await run(lake)).stderr).not.toContain('moved');
    expect((await verify(lake, '--deep')).code).toBe(0);
  });

  it.each(['vision', 'repair'])('loses no object when the first run is %s', async (verb) => {
    const lake = copy();
    const result = await cryptodl([verb, ...places(lake), '--json']);
    expect(result.code).toBe(0);
    expect(filesBelow(join(lake, 'binance')).filter((path) => !path.endsWith('.parquet'))).toEqual([]);
    expect(found(await verify(lake, '--deep'))).toEqual([]);
    const counted = await cryptodl(['sql', 'SELECT count(*) AS n FROM um_metrics', '--json', '--out', lake]);
    expect(counted.events).toEqual([{ n: (verb === 'vision' ? 10 : 8) * 288 }]);
  });

  it('is moved with the zips of a zip lake, whose folders then hold nothing', async () => {
    const lake = copy(zips);
    const { code } = await next(lake, '--format', 'zip');
    expect([code, filesBelow(join(lake, 'binance'))]).toEqual([0, []]);
    expect(filesBelow(join(lake, '_manifests'))).toEqual(SERIES.map((path) => `${path}.jsonl`));
    expect(found(await verify(lake))).toEqual([]);
  });

  it('has its report where retry finds it by its earlier name', async () => {
    const lake = copy();
    const name = report(lake);
    // The first run that writes is the retry itself, which replaces the report while it is moved.
    const first = await cryptodl(['retry', join(lake, 'failures', name), ...places(lake)]);
    expect([first.code, first.stderr]).toEqual([0, expect.stringMatching(/[12] ok/)]);
    expect(existsSync(join(lake, 'failures'))).toBe(false);
    expect(readFileSync(join(lake, '_failures', name), 'utf8')).not.toContain('"kind":"failed"');
    const again = await cryptodl(['retry', join(lake, 'failures', name), ...places(lake)]);
    expect([again.code, again.stderr]).not.toContain('ENOENT');
  });
});

function report(lake: string): string {
  return filesBelow(join(lake, 'failures'))[0] ?? '';
}

/** Kills the process with SIGKILL at the call of this number that moves a file. */
function killAt(number: number): Record<string, string> {
  return preload(
    scratch,
    `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { rename } = fs.promises;
let calls = 0;
fs.promises.rename = async (from, to) => {
  if (/_manifest\\.jsonl|failures|quarantine/.test(from) && (calls += 1) === ${number}) process.kill(process.pid, 'SIGKILL');
  return rename(from, to);
};
syncBuiltinESMExports();`,
  );
}

describe('a move that is killed', () => {
  it.each([1, 2, 3, 4, 5])(
    'at file %i leaves a lake that is read, and the next run ends the move',
    async (number) => {
      const lake = copy();
      const killed = await cryptodlProcess(['verify', '--fix', '--out', lake, ...NOW], {
        env: killAt(number),
      });
      expect(killed.signal).toBe('SIGKILL');
      expect(visible(lake)).toHaveLength(visible(earlier).length);
      expect(visible(lake)).not.toEqual(moved());
      expect(found(await verify(lake)).filter((text) => !text.startsWith('leftover'))).toEqual([]);
      const counted = await cryptodl([
        'sql',
        'SELECT count(*) AS n FROM um_metrics',
        '--json',
        '--out',
        lake,
      ]);
      expect(counted.events).toEqual([{ n: 7 * 288 }]);
      const { code, stderr } = await next(lake, ...SYMBOLS, ...DAYS.slice(0, 2), '--to', '2026-10-03');
      expect([code, stderr]).toEqual([0, expect.stringContaining('the layout of an earlier version')]);
      expect(visible(lake)).toEqual(moved());
    },
  );
});

describe('a manifest of an earlier version', () => {
  it('in a lake of the present layout counts, and moves when its series is written', async () => {
    const lake = copy();
    await verify(lake, '--fix');
    renameSync(join(lake, `_manifests/${ETH}.jsonl`), join(lake, ETH, '_manifest.jsonl'));
    expect(found(await verify(lake))).toEqual([]);
    const count = 'SELECT symbol, count(*) AS n FROM um_metrics GROUP BY 1 ORDER BY 1';
    expect((await cryptodl(['sql', count, '--out', lake, '--json'])).events).toHaveLength(2);
    expect((await next(lake)).code).toBe(0);
    expect(visible(lake)).toEqual(moved());
    expect(found(await verify(lake, '--deep'))).toEqual([]);
  });

  it('beside the present one does not count, is kept, and is a finding of verify', async () => {
    const lake = copy();
    await verify(lake, '--fix');
    writeFileSync(join(lake, BTC, '_manifest.jsonl'), 'other\n');
    expect((await next(lake)).code).toBe(0);
    const checked = await verify(lake);
    expect([checked.code, found(checked)]).toEqual([4, [`stranger ${BTC}/_manifest.jsonl`]]);
    expect(checked.stdout).toContain('a manifest of an earlier version');
    expect((await verify(lake, '--fix')).code).toBe(0);
    const kept = filesBelow(join(lake, '_quarantine')).filter((path) => path.includes('_manifest-'));
    expect(readFileSync(join(lake, '_quarantine', kept[0] ?? ''), 'utf8')).toBe('other\n');
  });
});

describe('the move', () => {
  it('overwrites nothing, and leaves files that cryptodl did not write', async () => {
    const lake = copy();
    const name = report(lake);
    const strangers = {
      'failures/mine.jsonl': 'mine',
      'quarantine/notes.txt': 'notes',
      [`_failures/${name}`]: 'present',
      'binance/um/_manifest.jsonl': 'no series',
    };
    for (const [path, text] of Object.entries(strangers)) {
      mkdirSync(dirname(join(lake, path)), { recursive: true });
      writeFileSync(join(lake, path), text);
    }
    const before = readFileSync(join(lake, 'failures', name), 'utf8');
    expect((await next(lake, ...SYMBOLS, ...DAYS)).code).toBe(0);
    for (const [path, text] of Object.entries(strangers))
      expect(readFileSync(join(lake, path), 'utf8')).toBe(text);
    expect(readFileSync(join(lake, 'failures', name), 'utf8')).toBe(before);
    expect(existsSync(join(lake, `_manifests/${BTC}.jsonl`))).toBe(true);
  });

  it.each(['failures', 'quarantine', BTC])('follows no link in place of %s', async (path) => {
    const lake = copy();
    const outside = join(scene.newFolder(), 'target');
    renameSync(join(lake, path), outside);
    symlinkSync(outside, join(lake, path));
    const before = filesBelow(outside);
    await verify(lake, '--fix');
    expect(filesBelow(outside)).toEqual(before);
  });
});

describe('a link', () => {
  it('in place of the mark of the move does not change its target', async () => {
    const lake = copy();
    const target = join(scene.newFolder(), 'target');
    writeFileSync(target, 'of another program');
    mkdirSync(join(lake, '.cryptodl'), { recursive: true });
    symlinkSync(target, join(lake, '.cryptodl/upgrade'));
    await verify(lake, '--fix');
    expect(readFileSync(target, 'utf8')).toBe('of another program');
  });

  it.each(['_manifests', '_manifests/binance', '_manifests/binance/um'])(
    'in place of %s ends every run',
    async (path) => {
      const lake = copy();
      await verify(lake, '--fix');
      const outside = join(scene.newFolder(), 'target');
      renameSync(join(lake, path), outside);
      symlinkSync(outside, join(lake, path));
      mkdirSync(join(outside, 'other'));
      writeFileSync(join(outside, 'other/notes.txt'), 'of another program');
      const before = filesBelow(outside).map((file) => readFileSync(join(outside, file), 'utf8'));
      const run = await next(lake, ...SYMBOLS, '--days', '2');
      expect([run.code, run.stderr]).toEqual([
        1,
        expect.stringContaining(`${join(lake, path)} is a symbolic link`),
      ]);
      for (const verb of ['coverage', 'verify']) {
        const { code, stderr, stdout } = await cryptodl([verb, '--out', lake, ...NOW]);
        expect([code === 0, stderr + stdout]).toEqual([false, expect.stringMatching(/symbolic link/)]);
      }
      expect((await next(lake)).code).not.toBe(0);
      expect((await cryptodl(['repair', ...places(lake)])).code).not.toBe(0);
      expect((await verify(lake, '--fix')).code).not.toBe(0);
      expect(filesBelow(outside).map((file) => readFileSync(join(outside, file), 'utf8'))).toEqual(before);
      expect(existsSync(join(lake, BTC, '2026-10.parquet'))).toBe(true);
    },
  );
});

describe('a series whose folder was removed', () => {
  it('is missing while its manifest is there, and repair fetches it again', async () => {
    const lake = copy();
    await verify(lake, '--fix');
    const digests = await parquetDigests(lake);
    renameSync(join(lake, BTC), join(lake, '.cryptodl/removed'));
    const checked = await verify(lake);
    expect([checked.code, found(checked)]).toEqual([4, [`missing ${BTC}/2026-10.parquet`]]);
    expect((await cryptodl(['repair', ...places(lake)])).code).toBe(0);
    expect((await parquetDigests(lake))[0]).toBe(digests[0]);
  });

  it('is no part of the lake without its manifest', async () => {
    const lake = copy();
    await verify(lake, '--fix');
    renameSync(join(lake, BTC), join(lake, '.cryptodl/removed'));
    renameSync(join(lake, `_manifests/${BTC}.jsonl`), join(lake, '.cryptodl/manifest'));
    expect(found(await verify(lake))).toEqual([]);
  });
});
