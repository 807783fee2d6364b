/** Nothing that lies in a lake makes a run read, write or delete outside of it. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlOk, FAST, found } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { manifestOf, filesBelow, journalOf, leftInternally, manifestLines } from '../helpers/lake.js';
import type { TestJournal } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const SERIES = 'binance/um/metrics/symbol=BTCUSDT';
const OTHER = 'binance/um/metrics/symbol=ETHUSDT';
const MANIFEST = `_manifests/${SERIES}.jsonl`;
const ZIPS = 'data/futures/um/daily/metrics/BTCUSDT';

const scene = useScene({
  archive: [{ dataset: 'metrics', symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-10-01', to: '2026-10-06' }],
});
const { scratch } = scene;
const sound = join(scratch, 'sound');
const zips = join(scratch, 'zips');

beforeAll(async () => {
  const symbols = ['--symbols', 'BTCUSDT,ETHUSDT', '--from', '2026-10-01', '--to', '2026-10-04'];
  await cryptodlOk(['vision', '--dataset', 'metrics', ...symbols, ...places(sound)]);
  await cryptodlOk(['vision', '--dataset', 'metrics', ...symbols, '--format', 'zip', ...places(zips)]);
});

function places(lake: string): string[] {
  return ['--out', lake, '--now', '2026-10-06T08:00:00Z', '--archive-url', scene.archive.url, ...FAST];
}

/** A copy of a sound lake, to be harmed; with a folder beside it that is none of its business. */
function copy(of = sound): { lake: string; outside: string } {
  const [lake, outside] = [scene.newFolder(), scene.newFolder()];
  cpSync(of, lake, { recursive: true });
  return { lake, outside };
}

/** Puts a folder or file of the lake outside, and a link in its place. Tells what lies outside now. */
function link(lake: string, outside: string, place: string): () => Record<string, string> {
  mkdirSync(outside, { recursive: true });
  const target = join(outside, 'target');
  if (existsSync(join(lake, place))) renameSync(join(lake, place), target);
  else mkdirSync(target);
  mkdirSync(dirname(join(lake, place)), { recursive: true });
  symlinkSync(target, join(lake, place));
  return () => contents(outside);
}

function contents(folder: string): Record<string, string> {
  return Object.fromEntries(
    filesBelow(folder).map((file) => [file, readFileSync(join(folder, file), 'base64')]),
  );
}

async function waitFor(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

const going = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['vision', ...places(lake), '--json', ...flags]);
const named = (lake: string, ...flags: string[]): Promise<CliResult> =>
  going(lake, '--dataset', 'metrics', '--symbols', 'BTCUSDT', '--days', '5', ...flags);
const verify = (lake: string, ...flags: string[]): Promise<CliResult> =>
  cryptodl(['verify', '--out', lake, '--now', '2026-10-06T08:00:00Z', '--json', ...flags]);
const repair = (lake: string): Promise<CliResult> => cryptodl(['repair', ...places(lake), '--json']);
const coverage = (lake: string): Promise<CliResult> =>
  cryptodl(['coverage', '--out', lake, '--now', '2026-10-06T08:00:00Z', '--json']);
const sql = (lake: string, query: string): Promise<CliResult> => cryptodl(['sql', query, '--out', lake]);

describe('a commit journal', () => {
  /** What a run leaves that is killed before it takes four day files away and publishes their month. */
  function pending(
    lake: string,
    of: string,
    edit: (journal: TestJournal) => unknown = (whole) => whole,
  ): void {
    mkdirSync(join(lake, '.cryptodl/tmp'), { recursive: true });
    writeFileSync(join(lake, '.cryptodl/tmp/x.partial'), 'staged');
    const journal = {
      series: SERIES,
      publications: [{ staged: 'x.partial', target: '2026-11.parquet' }],
      dead: ['2026-10.parquet'],
      lines: [],
    };
    const edited = edit(journal);
    const isJournal = typeof edited === 'object' && !Array.isArray(edited);
    const content = isJournal ? journalOf(of, edited as TestJournal) : edited;
    writeFileSync(join(lake, '.cryptodl/commit-x.json'), JSON.stringify(content));
  }
  /** The journal, and what was staged, are kept where the run says. */
  function keptBeside(lake: string): string[] {
    return leftInternally(lake).map((path) => path.replace(/set-aside-[\w-]+/, 'set-aside'));
  }
  const KEPT = ['set-aside/commit-x.json', 'set-aside/tmp/x.partial'];

  it('of a lake that was copied is not applied to the lake that it was copied from', async () => {
    const { lake } = copy();
    pending(lake, sound);
    const before = contents(sound);
    const { code, stderr, events } = await verify(lake, '--fix');
    expect([contents(sound), code]).toEqual([before, 0]);
    expect(stderr).toContain('commit-x.json');
    for (const path of ['.cryptodl/commit-x.json', '.cryptodl/tmp/x.partial'])
      expect(events).toContainEqual(
        expect.objectContaining({
          kind: 'leftover',
          path,
          done: expect.stringContaining('set aside') as string,
        }),
      );
    expect(keptBeside(lake)).toEqual(KEPT);
    expect(filesBelow(join(lake, SERIES))).toEqual(['2026-10.parquet']);
  });

  it('that is cut, or is a link, is set aside as well', async () => {
    const { lake, outside } = copy();
    pending(lake, lake);
    renameSync(join(lake, '.cryptodl/commit-x.json'), join(outside, 'journal'));
    symlinkSync(join(outside, 'journal'), join(lake, '.cryptodl/commit-x.json'));
    writeFileSync(join(lake, '.cryptodl/commit-y.json'), '{"seriesFolder":"');
    const { code, stderr } = await named(lake);
    expect([code, existsSync(join(outside, 'journal'))]).toEqual([0, true]);
    expect(stderr).toContain('commit-x.json');
    expect(stderr).toContain('commit-y.json');
    expect(existsSync(join(lake, SERIES, '2026-11.parquet'))).toBe(false);
  });

  it('that is a pipe does not hold a run up', async () => {
    const { lake } = copy();
    execFileSync('mkfifo', [join(lake, '.cryptodl/commit-x.json')]);
    const { code, stderr } = await named(lake);
    expect([code, stderr]).toEqual([0, expect.stringContaining('it is not a regular file')]);
  });

  it('is not applied while .cryptodl/tmp is a symbolic link, and nothing is moved out of its target', async () => {
    const { lake, outside } = copy();
    pending(lake, lake);
    const left = link(lake, outside, '.cryptodl/tmp');
    const before = [left(), contents(join(lake, SERIES))];
    for (const run of [await named(lake), await verify(lake, '--fix'), await repair(lake)])
      expect([run.code, run.stderr]).toEqual([
        1,
        expect.stringContaining('.cryptodl/tmp is a symbolic link'),
      ]);
    expect([left(), contents(join(lake, SERIES))]).toEqual(before);
  });
});

describe('a manifest line', () => {
  /** Says of the second day that it is in this file. */
  function say(lake: string, file: string, fields: object = {}): void {
    const [line] = manifestLines(join(lake, SERIES)).filter(({ period }) => period === '2026-10-02');
    appendFileSync(join(lake, MANIFEST), `${JSON.stringify({ ...line, file, ...fields })}\n`);
  }

  it.each(['../../../../../outside.parquet', '/outside.parquet', '_manifest.jsonl', 'a/2026-10.parquet'])(
    'that names the file %s is refused by every verb, and the file is left alone',
    async (name) => {
      const { lake, outside } = copy();
      const file = join(outside, 'outside.parquet');
      writeFileSync(file, 'precious');
      const told = name.startsWith('/') ? file : name.replace('outside.', `${basename(outside)}/outside.`);
      say(lake, told);
      for (const run of [await going(lake), await named(lake), await named(lake, '--force')]) {
        expect([run.code, existsSync(join(lake, MANIFEST))]).toEqual([1, true]);
        expect(run.stderr).toContain('symbol=BTCUSDT.jsonl line 5 is damaged');
      }
      expect((await coverage(lake)).stderr).toContain('symbol=BTCUSDT.jsonl line 5 is damaged');
      const views = await cryptodl(['sql', '--views', '--out', lake]);
      expect([views.code, views.stdout]).toEqual([1, expect.not.stringContaining('outside')]);
      expect(found(await verify(lake, '--fix'))).toEqual([`line-damaged ${MANIFEST}`]);
      expect((await repair(lake)).code).toBe(0);
      expect(found(await verify(lake))).toEqual([]);
      expect(readFileSync(file, 'utf8')).toBe('precious');
    },
  );

  it('of a zip names a key of the archive', async () => {
    const { lake, outside } = copy(zips);
    writeFileSync(join(outside, 'file.zip'), 'precious');
    const file = `data/../../${basename(outside)}/file.zip`;
    say(lake, file);
    expect((await going(lake)).code).toBe(1);
    await verify(lake, '--fix');
    expect(contents(outside)).toEqual({ 'file.zip': Buffer.from('precious').toString('base64') });
  });
});

describe('a line of another series', () => {
  it('is damaged for every verb: the files of a series say nothing in the folder of another', async () => {
    const { lake } = copy();
    cpSync(join(lake, OTHER), join(lake, SERIES), { recursive: true });
    cpSync(manifestOf(join(lake, OTHER)), join(lake, MANIFEST));
    const checked = await verify(lake, '--deep');
    expect([checked.code, found(checked)]).toEqual([
      4,
      [...Array.from({ length: 4 }, () => `line-damaged ${MANIFEST}`), `unlisted ${SERIES}/2026-10.parquet`],
    ]);
    expect(checked.stdout).toContain('not an object of this series');
    for (const result of [
      await going(lake),
      await named(lake),
      await sql(lake, 'SELECT count(*) FROM um_metrics'),
    ]) {
      expect(result).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`${MANIFEST} line 1 is damaged`) as string,
      });
    }
    expect((await coverage(lake)).stdout).not.toContain('"BTCUSDT"');
    expect((await repair(lake)).code).toBe(0);
    expect((await verify(lake, '--deep')).code).toBe(0);
    const symbols = await sql(lake, 'SELECT symbol, count(*) FROM um_metrics GROUP BY 1 ORDER BY 1');
    expect(symbols.stdout.trim().split('\n').slice(1)).toEqual(['ETHUSDT,1152']);
    expect(readFileSync(join(lake, MANIFEST), 'utf8')).toBe('');
    expect(filesBelow(join(lake, '_quarantine'), '.parquet')).toHaveLength(1);
  });
});

describe('a symbolic link', () => {
  it.each([SERIES, 'binance'])(
    'in place of %s is not followed by any verb, and each of them names it',
    async (place) => {
      const { lake, outside } = copy();
      const left = link(lake, outside, place);
      const before = left();
      const warned = `${join(lake, place)} is a symbolic link`;
      const runs = [await named(lake), await named(lake, '--force')];
      expect(runs.map(({ code, stderr }) => [code, stderr.includes(warned)])).toEqual([
        [1, true],
        [1, true],
      ]);
      expect((await coverage(lake)).stderr).toContain(warned);
      expect((await sql(lake, 'SELECT count(*) FROM um_metrics')).stderr).toContain(warned);
      expect((await going(lake)).stderr).toContain(warned);
      const looked = await verify(lake);
      expect([looked.code, found(looked)]).toEqual([4, [`link ${place}`]]);
      expect(found(await verify(lake, '--fix'))).toEqual([`link ${place}`]);
      await repair(lake);
      expect(left()).toEqual(before);
      expect(readlinkSync(join(lake, place))).toBe(join(outside, 'target'));
    },
  );

  it('keeps no other series from going on', async () => {
    const { lake, outside } = copy();
    link(lake, outside, SERIES);
    const run = await going(lake);
    expect([run.code, run.events.at(-1)]).toEqual([
      0,
      expect.objectContaining({ outcomes: expect.objectContaining({ ok: 1 }) as object }),
    ]);
    const repaired = await repair(lake);
    expect([repaired.code, repaired.stderr]).toEqual([
      4,
      expect.stringContaining(`${SERIES} was not changed: symbolic links inside a lake are not followed;`),
    ]);
    expect((await sql(lake, 'SELECT DISTINCT symbol FROM um_metrics')).stdout).toContain('ETHUSDT');
    expect((await coverage(lake)).events[0]).toMatchObject({ symbol: 'ETHUSDT' });
  });

  it('that stays in the lake is not followed either: no row is seen twice', async () => {
    const { lake } = copy();
    symlinkSync('symbol=BTCUSDT', join(lake, 'binance/um/metrics/symbol=COPY'));
    const { stdout } = await sql(lake, 'SELECT count(DISTINCT symbol) AS n FROM um_metrics');
    expect(stdout).toBe('n\n2\n');
    expect(found(await verify(lake, '--fix'))).toEqual(['link binance/um/metrics/symbol=COPY']);
  });

  it.each([
    ['csv', SERIES],
    ['zip', ZIPS],
  ])('that appears while a run is under way is not written through (--format %s)', async (format, place) => {
    const { lake, outside } = copy();
    rmSync(lake, { recursive: true });
    const partition = format === 'csv' ? ['--partition', 'day'] : [];
    const flags = ['--format', format, ...partition, '--concurrency', '1'];
    // Zips of a month are committed together, so the first two days come from a run of their own.
    const days = ['--from', '2026-10-01', '--to', '2026-10-02'];
    const first = await going(lake, '--dataset', 'metrics', '--symbols', 'BTCUSDT', ...days, ...flags);
    expect(first.code).toBe(0);
    let left: () => Record<string, string> = () => ({});
    let before: Record<string, string> = {};
    scene.archive.fault = (path, request, response) => {
      if (!path.endsWith('2026-10-03.zip')) return false;
      const committed = (): number =>
        existsSync(join(lake, MANIFEST))
          ? readFileSync(join(lake, MANIFEST), 'utf8').split('\n').length - 1
          : 0;
      void waitFor(() => committed() === 2).then(() => {
        left = link(lake, outside, place);
        before = left();
        scene.archive.serve(request, response);
      });
      return true;
    };
    const run = await named(lake, ...flags);
    scene.archive.fault = undefined;
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining(
        `${place} is a symbolic link; links below the lake or the target are not followed`,
      ),
    ]);
    expect(Object.keys(before)).not.toEqual([]);
    expect(left()).toEqual(before);
  });

  it.each(['parquet', 'csv', 'zip'])(
    'in place of .cryptodl/tmp while a run is under way: nothing is written or removed behind it (--format %s)',
    async (format) => {
      const { lake, outside } = copy();
      rmSync(lake, { recursive: true });
      let left: () => Record<string, string> = () => ({});
      let before: Record<string, string> = {};
      scene.archive.fault = (path, request, response) => {
        if (path.endsWith('2026-10-03.zip')) {
          scene.archive.fault = undefined;
          left = link(lake, outside, '.cryptodl/tmp');
          const [own = ''] = readdirSync(join(outside, 'target'));
          expect(own).toMatch(/^cryptodl-run-/);
          writeFileSync(join(outside, 'target', own, 'precious'), 'of the user');
          before = left();
        }
        scene.archive.serve(request, response);
        return true;
      };
      const run = await named(lake, '--format', format);
      scene.archive.fault = undefined;
      expect([run.code, run.stderr]).toEqual([
        1,
        expect.stringContaining(
          '.cryptodl/tmp is a symbolic link; links below the lake or the target are not followed',
        ),
      ]);
      expect(Object.keys(before)).toContainEqual(expect.stringContaining('precious'));
      expect(left()).toEqual(before);
    },
  );

  it('a folder in place of a sidecar: no zip appears without its digest', async () => {
    const { lake } = copy();
    const zip = join(lake, ZIPS, 'BTCUSDT-metrics-2026-10-01.zip');
    mkdirSync(`${zip}.CHECKSUM/precious`, { recursive: true });
    const run = await named(lake, '--format', 'zip');
    expect(run.code).toBe(1);
    expect(existsSync(zip)).toBe(false);
    expect(readdirSync(`${zip}.CHECKSUM`)).toEqual(['precious']);
  });

  it('in place of .cryptodl is refused before anything is cleared', async () => {
    const { lake, outside } = copy();
    rmSync(join(lake, '.cryptodl'), { recursive: true, force: true });
    const left = link(lake, outside, '.cryptodl');
    mkdirSync(join(outside, 'target/tmp'));
    writeFileSync(join(outside, 'target/tmp/precious'), '');
    writeFileSync(join(outside, 'target/commit-x.json'), '{}');
    const before = left();
    for (const run of [
      await named(lake),
      await verify(lake),
      await verify(lake, '--fix'),
      await repair(lake),
    ])
      expect([run.code, run.stderr]).toEqual([1, expect.stringContaining('.cryptodl is a symbolic link')]);
    expect(left()).toEqual(before);
  });

  it('in place of a manifest is neither read nor written through', async () => {
    const { lake, outside } = copy();
    const left = link(lake, outside, MANIFEST);
    appendFileSync(join(outside, 'target'), 'no line end');
    const before = left();
    const run = await named(lake);
    expect([run.code, run.stderr]).toEqual([
      1,
      expect.stringContaining('symbol=BTCUSDT.jsonl is a symbolic link'),
    ]);
    for (const { stderr } of [await going(lake), await coverage(lake), await sql(lake, 'SHOW TABLES')])
      expect(stderr).toContain('symbol=BTCUSDT.jsonl is a symbolic link');
    expect(found(await verify(lake, '--fix'))).toEqual([`link ${MANIFEST}`]);
    await repair(lake);
    expect(left()).toEqual(before);
  });

  it('nor is a pipe in its place: every verb names it, and verify goes on with the other series', async () => {
    const { lake } = copy();
    rmSync(join(lake, MANIFEST));
    execFileSync('mkfifo', [join(lake, MANIFEST)]);
    for (const { code, stderr } of [await named(lake), await going(lake)]) {
      expect(code).toBe(1);
      expect(stderr).toContain('symbol=BTCUSDT.jsonl is not a regular file');
    }
    const repaired = await repair(lake);
    expect([repaired.code, repaired.stderr]).toEqual([4, expect.stringContaining('found      1 unreadable')]);
    expect(repaired.stderr).toContain('symbol=BTCUSDT.jsonl is not a regular file; make it readable');
    for (const { code, stderr } of [await coverage(lake), await sql(lake, 'SHOW TABLES')]) {
      expect(code).not.toBe(0);
      expect(stderr).toContain('symbol=BTCUSDT.jsonl is not a regular file');
    }
    for (const result of [await verify(lake), await verify(lake, '--fix')]) {
      expect(result.code).toBe(1);
      expect(found(result)).toEqual([`unreadable ${MANIFEST}`]);
    }
  });

  it('a folder in place of a partition is named with the next step, and nothing in it is lost', async () => {
    const { lake } = copy();
    const partition = join(lake, SERIES, '2026-10.parquet');
    rmSync(partition);
    mkdirSync(partition);
    writeFileSync(join(partition, 'mine'), 'kept');
    expect(found(await verify(lake))).toContain(`unreadable ${SERIES}/2026-10.parquet`);
    const { code, stderr } = await repair(lake);
    expect(code).toBe(1);
    expect(stderr).toContain('a folder exists in place of a file');
    expect(stderr).toContain('move the folder away and try again');
    expect(filesBelow(join(lake, '.cryptodl/tmp'))).toEqual([]);
    const [kept = ''] = filesBelow(join(lake, '_quarantine'));
    expect(readFileSync(join(lake, '_quarantine', kept), 'utf8')).toBe('kept');
    rmSync(partition, { recursive: true });
    expect((await repair(lake)).code).toBe(0);
    expect((await verify(lake)).code).toBe(0);
  });

  it('in place of a partition is not read, and repair puts the file there', async () => {
    const { lake, outside } = copy();
    const partition = `${SERIES}/2026-10.parquet`;
    const left = link(lake, outside, partition);
    const before = left();
    const query = 'SELECT count(DISTINCT symbol) AS n FROM um_metrics';
    expect((await sql(lake, query)).stdout).toBe('n\n1\n');
    expect(found(await verify(lake, '--fix'))).toEqual([`missing ${partition}`]);
    expect((await repair(lake)).code).toBe(0);
    expect((await sql(lake, query)).stdout).toBe('n\n2\n');
    expect([found(await verify(lake)), left()]).toEqual([[], before]);
  });

  it.each(['_failures', '_quarantine', '.cryptodl/tmp/run'])(
    'in place of %s is not written through',
    async (place) => {
      const { lake, outside } = copy();
      const left = link(lake, outside, place);
      writeFileSync(join(outside, 'target/precious'), '');
      writeFileSync(join(lake, SERIES, 'stranger'), '');
      scene.refuse((path) => path.includes('2026-10-05'), 200, 'no zip');
      await named(lake);
      scene.archive.fault = undefined;
      await verify(lake, '--fix');
      expect(Object.keys(left())).toEqual(['target/precious']);
    },
  );

  it.each(['data', ZIPS])('in place of %s: no zip is read or written', async (place) => {
    const { lake, outside } = copy(zips);
    const left = link(lake, outside, place);
    const before = left();
    const run = await named(lake, '--format', 'zip');
    expect([run.code, run.stderr]).toEqual([1, expect.stringContaining(`${place} is a symbolic link`)]);
    expect(found(await verify(lake, '--fix'))).toContain(`link ${place}`);
    await repair(lake);
    expect(left()).toEqual(before);
  });
});

it.each(['parquet', 'zip'])('nothing that a run writes as %s may be written by others', async (format) => {
  const out = join(scratch, `umask-${format}`);
  const [lake, state, temp, report] = ['lake', 'state', 'temp', 'report/failures.jsonl'].map((name) =>
    join(out, name),
  );
  const flags = ['--format', format, '--state-dir', state ?? '', '--temp-dir', temp ?? ''];
  scene.refuse((path) => path.includes('2026-10-05'), 200, 'no zip');
  const what = ['--dataset', 'metrics', '--symbols', 'BTCUSDT', '--days', '5', '--failures', report ?? ''];
  await cryptodl(['vision', ...places(lake ?? ''), ...what, ...flags], {
    wrap: ['sh', '-c', 'umask 000; exec "$@"', 'sh'],
  });
  scene.archive.fault = undefined;
  const made = readdirSync(out, { recursive: true }) as string[];
  expect(made.filter((path) => (statSync(join(out, path)).mode & 0o002) !== 0)).toEqual([]);
  const kinds = ['_quarantine', 'symbol=BTCUSDT.jsonl', 'state/cache', 'failures.jsonl', `.${format}`];
  expect(kinds.filter((kind) => !made.some((path) => path.includes(kind)))).toEqual([]);
});

it.each([
  ['002', true],
  ['022', false],
] as const)('under umask %s the group may write what a run makes: %s', async (umask, isWritable) => {
  const out = join(scratch, `group-${umask}`);
  const what = ['--dataset', 'metrics', '--symbols', 'BTCUSDT', '--days', '1', '--format', 'zip'];
  await cryptodlOk(['vision', ...places(join(out, 'lake')), ...what], {
    wrap: ['sh', '-c', `umask ${umask}; exec "$@"`, 'sh'],
  });
  const made = readdirSync(out, { recursive: true }) as string[];
  expect(made.some((path) => path.endsWith('symbol=BTCUSDT.jsonl'))).toBe(true);
  const isOfGroup = (path: string): boolean => (statSync(join(out, path)).mode & 0o020) !== 0;
  expect(made.filter((path) => isOfGroup(path) !== isWritable)).toEqual([]);
});
