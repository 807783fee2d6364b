/** A run is killed at its N-th call on the files of a lake, or that call fails, and then the same command is run again. */
import { appendFileSync, cpSync, mkdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlProcess, cryptodlProcessOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow } from '../helpers/lake.js';
import { becomeOriginal, brokenPromises, differences, readLake, rowDifferences } from './lake-state.js';
import type { LakeState } from './lake-state.js';
import { SIZE } from './size.js';
import { CALLS, HAS_STRACE, STRACE, Tracer } from './strace.js';
import type { Call, Harm, Traced, TracedRun } from './strace.js';

const SYMBOLS = ['BTCUSDT', 'ETHUSDT'];
const MANIFEST = '_manifests/binance/um/metrics/symbol=BTCUSDT.jsonl';
const HARMS: readonly Harm[] = ['SIGKILL', 'ENOSPC', 'EIO'];

interface Scene {
  /** As a part of a title. */
  readonly name: string;
  readonly symbols: readonly string[];
  readonly flags: readonly string[];
  /** The second by default. */
  readonly lastDay?: number;
  /** Makes the lake as the disturbed run finds it. */
  readonly begin: (bench: Bench) => Promise<void>;
}

/** Where one scene is played, again and again at the same paths. */
interface Bench {
  readonly folder: string;
  readonly lake: string;
  readonly tracer: Tracer;
  readonly command: (scene: Pick<Scene, 'symbols' | 'flags' | 'lastDay'>) => string[];
}

const REPLACING = ['--partition', 'month', '--force'];

/** A run that is killed at the first such call whose text fits. */
async function killAt(
  { tracer, lake, folder }: Bench,
  args: readonly string[],
  call: Call,
  text: string,
): Promise<void> {
  const spare = join(folder, 'spare');
  cpSync(lake, spare, { recursive: true });
  const { calls, paths } = await tracer.count(args);
  const when =
    calls.filter((traced) => traced.call === call).findIndex((traced) => traced.text.includes(text)) + 1;
  rmSync(lake, { recursive: true });
  cpSync(spare, lake, { recursive: true });
  rmSync(spare, { recursive: true });
  const killed = await tracer.harm(args, { call, when, harm: 'SIGKILL', paths });
  expect(killed.signal).toBe('SIGKILL');
}

const SCENES: readonly Scene[] = [
  {
    name: 'a new lake of two series',
    symbols: SYMBOLS,
    flags: [],
    begin: () => Promise.resolve(),
  },
  {
    name: 'a day that is added to a month file, after the end of a torn manifest',
    symbols: ['BTCUSDT'],
    flags: [],
    begin: async ({ lake, command }) => {
      await cryptodlProcessOk(command({ symbols: ['BTCUSDT'], flags: [], lastDay: 1 }));
      appendFileSync(join(lake, MANIFEST), '{"v":1,"kind":"obj');
    },
  },
  {
    name: 'day files that are replaced by a month file',
    symbols: ['BTCUSDT'],
    flags: REPLACING,
    begin: async ({ command }) => {
      await cryptodlProcessOk(command({ symbols: ['BTCUSDT'], flags: ['--partition', 'day'] }));
    },
  },
  {
    name: 'a replacement that an earlier kill left half done',
    symbols: ['BTCUSDT'],
    // Nothing is fetched anew that the earlier run had.
    flags: ['--partition', 'month'],
    begin: async (bench) => {
      await cryptodlProcessOk(bench.command({ symbols: ['BTCUSDT'], flags: ['--partition', 'day'] }));
      await killAt(
        bench,
        bench.command({ symbols: ['BTCUSDT'], flags: REPLACING }),
        'unlink',
        '2026-10-02.parquet',
      );
      const { pending, files } = await readLake(bench.lake);
      expect({ commits: pending.size, files: files.size }).toEqual({ commits: 1, files: 2 });
    },
  },
  {
    name: 'a month file that is removed for a day file, after a kill that left the lines of a day without their file',
    symbols: ['BTCUSDT'],
    flags: ['--partition', 'day', '--force'],
    lastDay: 1,
    begin: async (bench) => {
      await cryptodlProcessOk(bench.command({ symbols: ['BTCUSDT'], flags: [], lastDay: 1 }));
      await killAt(bench, bench.command({ symbols: ['BTCUSDT'], flags: [] }), 'rename', '2026-10.parquet');
      expect(readFileSync(join(bench.lake, MANIFEST), 'utf8')).toContain('"fileBefore"');
      // The lines do not count, because the file is the one before.
      expect((await readLake(bench.lake)).held.size).toBe(1);
    },
  },
];

/** A scene at its place, and how it ends when nothing happens. */
interface Stage extends Bench {
  readonly traced: Traced;
  readonly before: LakeState;
  readonly undisturbed: LakeState;
}

describe.skipIf(!HAS_STRACE)(`every call on a lake's files may be the last or fail, by ${STRACE}`, () => {
  const scratch = scratchFolder();
  let archive: TestArchive;
  beforeAll(async () => {
    const days = { from: '2026-10-01', to: '2026-10-02', cadence: 'daily' } as const;
    makeArchive(join(scratch, 'archive'), { market: 'um', dataset: 'metrics', symbols: SYMBOLS, ...days });
    archive = await startArchive(join(scratch, 'archive'));
  });
  afterAll(() => archive.close());

  async function build(scene: Scene, lane: number): Promise<Stage> {
    const folder = join(scratch, `scene-${lane}`);
    const lake = join(folder, 'lake');
    mkdirSync(lake, { recursive: true });
    const command: Bench['command'] = ({ symbols, flags, lastDay = 2 }) => {
      const what = ['--dataset', 'metrics', '--symbols', symbols.join(',')];
      const when = ['--from', '2026-10-01', '--to', `2026-10-0${lastDay}`, '--now', '2026-11-21T08:00:00Z'];
      const where = ['--archive-url', archive.url, '--out', lake, '--concurrency', '2'];
      return ['vision', ...what, ...when, ...where, ...FAST, ...flags];
    };
    const bench = { folder, lake, tracer: new Tracer(folder, lake, lane), command };
    await scene.begin(bench);
    cpSync(lake, join(folder, 'begun'), { recursive: true });
    const before = await readLake(lake);
    const traced = await bench.tracer.count(command(scene));
    expect({ code: traced.code, said: complaints(traced.stderr) }).toEqual({ code: 0, said: [] });
    return { ...bench, before, traced, undisturbed: await readLake(lake) };
  }

  const stages = new Map<Scene, Promise<Stage>>();
  const waiting = new Map<Scene, Promise<unknown>>();
  /** A stage is for one at a time. */
  async function onStage(scene: Scene, act: (stage: Stage) => Promise<void>): Promise<void> {
    const stage = stages.get(scene) ?? build(scene, SCENES.indexOf(scene));
    stages.set(scene, stage);
    const turn = (waiting.get(scene) ?? Promise.resolve()).then(async () => act(await stage));
    waiting.set(
      scene,
      turn.catch(() => undefined),
    );
    await turn;
  }

  describe.each(HARMS)(
    'after %s the lake is whole, and the same command ends as if nothing had been',
    (harm) => {
      it.concurrent.each(SCENES)(
        '$name: at calls that write, sync, rename, make, open or remove',
        async (scene) => {
          await onStage(scene, async (stage) => {
            const failures: string[] = [];
            const done: string[] = [];
            for (const call of CALLS) {
              const count = stage.traced.calls.filter((traced) => traced.call === call).length;
              const numbers = numbersOf(scene, stage.traced, call, harm);
              let reached = 0;
              for (const when of numbers) {
                const { harmed, wrong } = await disturb(stage, scene, { call, when, harm });
                if (harmed !== undefined) reached += 1;
                failures.push(
                  ...wrong.map((text) => `${harm} at ${call} number ${when} (${harmed}): ${text}`),
                );
              }
              if (numbers.length > 0 && reached === 0) failures.push(`${harm}: no ${call} was reached`);
              if (count > 0) done.push(`${call} ${reached} of ${count}`);
            }
            process.stderr.write(`${harm}, ${scene.name}: ${done.join(', ')}\n`);
            expect(failures).toEqual([]);
          });
        },
      );
    },
  );

  /** One disturbed run, and the one that makes good for it. Resolves with what went wrong. */
  async function disturb(
    stage: Stage,
    scene: Scene,
    point: Point,
  ): Promise<{ harmed: string | undefined; wrong: string[] }> {
    const { lake, folder, before, undisturbed } = stage;
    rmSync(lake, { recursive: true, force: true });
    cpSync(join(folder, 'begun'), lake, { recursive: true });
    becomeOriginal(lake);
    const run = await stage.tracer.harm(stage.command(scene), { ...point, paths: stage.traced.paths });
    const { harmed } = run;
    try {
      const state = await readLake(lake);
      const wrong = [...brokenPromises(state, before), ...wrongEnd(run, point)];
      if (run.code === 0) wrong.push(...rowDifferences(state, undisturbed));
      if (point.harm === 'SIGKILL' && COMMITTING.has(point.call))
        wrong.push(...(await lostToReaders(stage.command(scene), { lake, folder, before })));
      ageClaims(lake);
      const again = await cryptodlProcess(stage.command(scene));
      const healed = await readLake(lake);
      const then = [...brokenPromises(healed, before), ...differences(healed, undisturbed)];
      if (again.code !== 0 || complaints(again.stderr).length > 0)
        then.push(`it ends with ${again.code}: ${again.stderr}`);
      return { harmed, wrong: [...wrong, ...then.map((text) => `then the same command: ${text}`)] };
    } catch (error) {
      return { harmed, wrong: [String(error)] };
    }
  }
});

/** Calls of a commit, after which readers look at the lake. */
const COMMITTING: ReadonlySet<Call> = new Set(['rename', 'unlink', 'fdatasync', 'fsync']);

/**
 * What readers miss of the rows that were committed before: sql, coverage and a reader of the folder, at once, after verify --fix, and after a
 * run without the archive.
 */
async function lostToReaders(
  command: readonly string[],
  { lake, folder, before }: Pick<Stage, 'lake' | 'folder' | 'before'>,
): Promise<string[]> {
  const committed = new Set([...before.files.values()].flat()).size;
  if (committed === 0) return [];
  const copy = join(folder, 'copy');
  rmSync(copy, { recursive: true, force: true });
  cpSync(lake, copy, { recursive: true });
  becomeOriginal(copy);
  const found: string[] = [];
  const query = 'SELECT count(*)::INT AS c, count(DISTINCT (symbol, create_time))::INT AS d FROM um_metrics';
  const look = async (when: string): Promise<void> => {
    const { stdout, stderr } = await cryptodlProcess(['sql', query, '--out', copy, '--csv']);
    const [rows = 0, distinct = 0] = stdout.split('\n')[1]?.split(',').map(Number) ?? [];
    if (rows < committed || rows !== distinct)
      found.push(`${when} sql finds ${rows} rows (${distinct} distinct) of ${committed}: ${stderr}`);
    const { events } = await cryptodlProcess(['coverage', '--out', copy, '--json']);
    const held = events.reduce((sum, event) => sum + Number(event['held'] ?? 0), 0);
    if (held !== rows) found.push(`${when} coverage counts ${held} rows, sql ${rows}`);
    found.push(...brokenPromises(await readLake(copy), before).map((text) => `${when} ${text}`));
  };
  await look('at once');
  await cryptodlProcess(['verify', '--fix', '--out', copy]);
  await look('after verify --fix');
  const words = command.map((word) => (word === lake ? copy : word));
  const url = words.indexOf('--archive-url') + 1;
  await cryptodlProcess([...words.toSpliced(url, 1, 'http://127.0.0.1:1'), '--max-wait', '0']);
  await look('after a run without the archive');
  return found;
}

interface Point {
  readonly call: Call;
  readonly when: number;
  readonly harm: Harm;
}

/** Lock and spool are the same in every scene: the first one's are enough for a short run. */
const ALIKE = /\/lock[.-]|\/run-/;

/** Which calls of this name are harmed, counted from 1. */
function numbersOf(scene: Scene, { calls }: Traced, call: Call, harm: Harm): readonly number[] {
  const named = calls.filter((traced) => traced.call === call);
  if (SIZE.everyCall) return named.map((_, index) => index + 1);
  const kinds = new Map<string, number[]>();
  for (const [index, { kind }] of named.entries()) {
    if (scene !== SCENES[0] && ALIKE.test(kind)) continue;
    kinds.set(kind, [...(kinds.get(kind) ?? []), index + 1]);
  }
  // Two threads make folders, and strace counts the calls of each thread: only the first is found again.
  if (call === 'mkdir') return harm === 'EIO' ? [] : [1];
  // Of the files that are only read, one is enough.
  const isMinor = (kind: string): boolean => call === 'openat' && kind.endsWith('false');
  const minor = [...kinds.keys()].filter(isMinor);
  for (const kind of minor) if (kind !== minor[Math.trunc(minor.length / 2)]) kinds.delete(kind);
  const numbers = [...kinds.values()].map((same) => same[Math.trunc(same.length / 2)] ?? 0);
  const commits = named.findLastIndex(({ text }) => READS_OWN_FOLDER.test(text)) + 1;
  if (commits > 0 && !numbers.includes(commits)) numbers.push(commits);
  // The errors share them.
  return numbers.filter((_, index) => harm === 'SIGKILL' || index % 2 === HARMS.indexOf(harm) % 2);
}

/** Looks for commits that are to be finished. */
const READS_OWN_FOLDER = /\/lake\/\.cryptodl", [A-Z_|]*O_DIRECTORY/;

function complaints(stderr: string): string[] {
  return stderr.split('\n').filter((line) => line.startsWith('cryptodl: '));
}

/** A kill kills; an error ends with one line about the disk, or as if nothing had happened. */
function wrongEnd({ code, signal, stderr, harmed }: TracedRun, { harm }: Point): string[] {
  const said = complaints(stderr);
  const isClean = code === 0 && said.length === 0;
  if (harmed === undefined || (harm !== 'SIGKILL' && isClean))
    return isClean ? [] : [`ends with ${code}: ${stderr}`];
  if (harm === 'SIGKILL') return signal === 'SIGKILL' ? [] : [`ends with ${code}: ${stderr}`];
  // Node's recursive mkdir tells of the folder that is missing for it, not why it could not be made.
  const isMkdir = harmed.includes(' mkdir(');
  const reason = isMkdir ? /ENOSPC|EIO|ENOENT/ : /ENOSPC|EIO|No space left|Input\/output error/;
  const isClear = said.length === 1 && reason.test(said[0] ?? '') && !/unexpected:|^\s+at /m.test(stderr);
  return code === 1 && isClear ? [] : [`ends with ${code}: ${stderr}`];
}

/** A claim to the lock that a kill tore counts for ten seconds: they are over. */
function ageClaims(lake: string): void {
  const then = new Date(Date.now() - 60_000);
  for (const path of filesBelow(lake).filter((name) => /lock-[^/]*\.(tmp|claim)$/.test(name)))
    utimesSync(join(lake, path), then, then);
}
