/** What killed commands leave: the next command removes it, and leaves alone what a living process or somebody else has. */
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

import { BIN, cryptodl, cryptodlOk, cryptodlProcess, cryptodlProcessOk } from '../helpers/cli.js';
import type { CliOptions } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { preload } from '../helpers/preload.js';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-01', to: '2026-10-03', symbols: ['BTCUSDT', 'ETHUSDT'] }],
});

const FLAGS = '--symbols all --interval 1h --from 2026-10-01 --to 2026-10-03';

/** A process that kills itself before its call number `nth` of a function of node:fs/promises that has a path like `path`. */
function killedBefore(path: RegExp, nth: number): CliOptions {
  const script = `import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
let left = ${nth};
for (const name of ['open', 'rename', 'rm', 'writeFile']) {
  const call = fs[name];
  fs[name] = (...args) => {
    const isMeant = args.some((arg) => typeof arg === 'string' && ${String(path)}.test(arg));
    if (isMeant && (left -= 1) === 0) process.kill(process.pid, 'SIGKILL');
    return call(...args);
  };
}
syncBuiltinESMExports();`;
  return { env: preload(scene.scratch, script) };
}

/** Resolves when `folder` has an entry whose name begins with `start`; with its path. */
async function entryOf(folder: string, start: string): Promise<string> {
  for (;;) {
    const name = existsSync(folder) ? readdirSync(folder).find((each) => each.startsWith(start)) : undefined;
    if (name !== undefined) return join(folder, name);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('files beside an output', () => {
  const verbs: readonly (readonly [string, readonly string[]])[] = [
    ['report', ['report', '--html', 'out.html']],
    ['plot', ['plot', 'BTCUSDT', '--html', 'out.html']],
  ];

  it.each(verbs)('of a killed %s are removed by another command that writes there', async (_, command) => {
    const { lake } = await scene.vision(FLAGS);
    const cwd = scene.newFolder();
    writeFileSync(join(cwd, '.notes.partial'), '');
    const killed = await cryptodlProcess([...command, '--out', lake], {
      cwd,
      ...killedBefore(/cryptodl-staged.*\.partial$/, 3),
    });
    expect([killed.signal, killed.stderr]).toEqual(['SIGKILL', '']);
    expect(readdirSync(cwd).filter((name) => name.endsWith('.partial'))).toHaveLength(2);
    await cryptodlOk(['report', '--html', 'page.html', '--out', lake], { cwd });
    expect(readdirSync(cwd)).toEqual(['.notes.partial', 'page.html']);
  });
});

it('a report that a killed retry has begun is removed by the next retry, and no other report is touched', async () => {
  const [failures, notes] = ['report.jsonl', 'report.jsonl.partial'];
  const cwd = scene.newFolder();
  writeFileSync(join(cwd, notes), '');
  scene.refuse((path) => path.endsWith('2026-10-02.zip'), 500);
  const flags = [...FLAGS.split(' '), '--failures', failures];
  expect((await scene.vision(flags, { cwd })).code).not.toBe(0);
  const retry = ['retry', failures];
  const killed = await cryptodlProcess(retry, { cwd, ...killedBefore(/\.partial$/, 2) });
  expect([killed.signal, readdirSync(cwd).length]).toEqual(['SIGKILL', 3]);
  scene.reset();
  await cryptodlOk(retry, { cwd });
  expect(readdirSync(cwd)).toEqual([notes]);
});

describe('the folder for temporary files', () => {
  /** A query that waits for its reader, with its folder for spilled data. */
  async function openQuery(lake: string, temp: string) {
    const query = 'SELECT i FROM range(50000000) AS numbers(i)';
    const child = spawn(process.execPath, [BIN, 'sql', query, '--out', lake], {
      env: { ...process.env, TMPDIR: temp },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return { child, folder: await entryOf(temp, 'cryptodl-sql-') };
  }

  it('keeps the folder of a living query, which only its user can read; a killed one is removed by any command', async () => {
    const { lake } = await scene.vision(FLAGS);
    const temp = scene.newFolder();
    const { child, folder } = await openQuery(lake, temp);
    const foreign = ['cryptodl-sql-1234', 'cryptodl-mirror-abc', `${basename(folder)}x`];
    for (const name of foreign) mkdirSync(join(temp, name));
    const link = `${folder.slice(0, -1)}${folder.endsWith('0') ? '1' : '0'}`;
    writeFileSync(join(folder, 'spilled.tmp'), 'rows');
    symlinkSync(lake, link);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    await cryptodlProcessOk(['coverage', '--out', lake], { env: { TMPDIR: temp } });
    expect(existsSync(join(folder, 'spilled.tmp'))).toBe(true);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    await cryptodlProcessOk(['coverage', '--out', lake], { env: { TMPDIR: temp } });
    expect(readdirSync(temp).sort()).toEqual([...foreign, basename(link)].sort());
  });

  it('has nothing of a dry run with a plan too large for memory, which follows no link of another user', async () => {
    const large = join(scene.folder, 'data/futures/um/daily/bookDepth');
    for (let symbol = 10; symbol < 40; symbol += 1)
      for (let day = 0; day < 340; day += 1) {
        const date = new Date(Date.UTC(2025, 0, 1 + day)).toISOString().slice(0, 10);
        const folder = join(large, `S${symbol}USDT`);
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, `S${symbol}USDT-bookDepth-${date}.zip`), '');
      }
    const temp = scene.newFolder();
    const flags = '--dataset bookDepth --symbols all --from 2025-01-01 --to 2025-12-06'.split(' ');
    const places = ['--archive-url', scene.archive.url, '--out', join(temp, 'lake')];
    const { code, stderr } = await cryptodlProcess(['vision', '-n', ...flags, ...places], {
      env: { TMPDIR: temp },
      onSpawn: ({ pid }) => {
        symlinkSync('/nowhere/else', join(temp, `cryptodl-dry-run-${pid}`));
      },
    });
    expect([code, stderr]).toEqual([0, expect.stringMatching(/10,200/)]);
    expect(readdirSync(temp)).toEqual([expect.stringMatching(/^cryptodl-dry-run-\d+$/)]);
  });

  /** Kills a run that waits for a zip; resolves with its folder in `temp`. */
  async function killedRun(lake: string, temp: string): Promise<string> {
    scene.answer(isZip, () => undefined);
    const ended = scene.vision([...FLAGS.split(' '), '--temp-dir', temp], {
      lake,
      onSpawn: (child) =>
        void entryOf(temp, 'cryptodl-run-').then(() => {
          child.kill('SIGKILL');
        }),
    });
    expect((await ended).signal).toBe('SIGKILL');
    scene.reset();
    return entryOf(temp, 'cryptodl-run-');
  }

  it('loses the files of a killed run of another container only with the next run of the same lake', async () => {
    const temp = scene.newFolder();
    const [first, second] = [join('first', 'lake'), join('second', 'lake')];
    const left = await killedRun(first, temp);
    // The digest of the host follows the kind of the folder and the digest of its lake.
    const elsewhere = left.replace(/(cryptodl-run-[0-9a-f]{12}-)[0-9a-f]{8}/, '$100000000');
    renameSync(left, elsewhere);
    const run = async (lake: string) =>
      expect(await scene.vision([...FLAGS.split(' '), '--temp-dir', temp], { lake })).toMatchObject({
        code: 0,
      });
    await run(second);
    expect(readdirSync(temp)).toEqual([basename(elsewhere)]);
    await run(first);
    expect(readdirSync(temp)).toEqual([]);
  });
});

describe('a file in the quarantine', () => {
  it('has its cause, whenever verify --fix is killed', async () => {
    for (let nth = 1; ; nth += 1) {
      const { lake } = await scene.vision(FLAGS);
      const data = filesBelow(lake, '.parquet');
      for (const file of data) truncateSync(join(lake, file), 500);
      const quarantined = (): string[] =>
        filesBelow(lake, '.parquet').filter((path) => path.startsWith('_quarantine'));
      const fix = ['verify', '--fix', '--out', lake];
      const { signal } = await cryptodlProcess(fix, killedBefore(/_quarantine/, nth));
      for (const file of quarantined()) expect(existsSync(join(lake, `${file}.cause`))).toBe(true);
      await cryptodl(fix);
      expect(quarantined().map((file) => basename(dirname(file)))).toEqual([
        'symbol=BTCUSDT',
        'symbol=ETHUSDT',
      ]);
      for (const file of quarantined()) expect(existsSync(join(lake, `${file}.cause`))).toBe(true);
      if (signal === null) return expect(nth).toBeGreaterThan(6);
    }
  });
});
