/** The move of a lake of an earlier version with a commit that was not finished: killed, on two file systems, and with a second writer. */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { cryptodl, cryptodlProcess } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { BTC, EARLIER_ARCHIVE, earlierLake, ETH, NOW, placesOf, stateOf } from '../helpers/earlier-lake.js';
import type { EarlierLake } from '../helpers/earlier-lake.js';
import { harmedMoves } from '../helpers/earlier-layout.js';
import type { Harm } from '../helpers/earlier-layout.js';
import { filesBelow, manifestLines } from '../helpers/lake.js';
import { preload } from '../helpers/preload.js';
import { useScene } from '../helpers/scene.js';

const scene = useScene({ archive: EARLIER_ARCHIVE });
let earlier: EarlierLake;
/** The lake after a move that nothing disturbed. */
let unharmed: string[];

beforeAll(async () => {
  earlier = await earlierLake(scene);
  const lake = earlier.copy();
  await fix(lake);
  unharmed = stateOf(lake);
});

const fix = (lake: string): Promise<CliResult> => cryptodl(['verify', '--fix', '--out', lake, ...NOW]);
const harmed = (lake: string, harm: Harm): Promise<CliResult> =>
  cryptodlProcess(['verify', '--fix', '--out', lake, ...NOW], {
    env: harmedMoves(scene.scratch, lake, harm),
  });

it('finishes the commit of the earlier version, and moves the files of all other series too', async () => {
  const lake = earlier.copy();
  const reports = filesBelow(join(lake, 'failures'));
  expect((await fix(lake)).code).toBe(0);
  const objects = manifestLines(join(lake, ETH)).filter(({ kind }) => kind === 'object');
  expect(objects.map(({ period }) => period)).toEqual(
    ['01', '02', '03', '04', '05'].map((day) => `2026-10-${day}`),
  );
  expect(manifestLines(join(lake, BTC)).filter(({ kind }) => kind === 'object')).toHaveLength(3);
  for (const path of [`${BTC}/_manifest.jsonl`, `${ETH}/_manifest.jsonl`, 'failures', 'quarantine'])
    expect(existsSync(join(lake, path))).toBe(false);
  expect(filesBelow(join(lake, '_failures'))).toEqual(expect.arrayContaining(reports));
  expect(filesBelow(join(lake, '_quarantine'))).toHaveLength(2);
  const checked = await cryptodl(['verify', '--deep', '--out', lake, ...NOW]);
  expect([checked.code, checked.stdout]).toEqual([0, '']);
});

describe.each([{ isOtherFileSystem: false }, { isOtherFileSystem: true }])('a move with %j', (harm) => {
  it('loses and repeats nothing, whichever operation a kill comes before', async () => {
    let killAt = 0;
    let signal: CliResult['signal'] = 'SIGKILL';
    while (signal !== null) {
      killAt += 1;
      const lake = earlier.copy();
      ({ signal } = await harmed(lake, { ...harm, killAt }));
      // A reader finds the lines at one of the two places.
      const { stderr } = await cryptodl(['coverage', '--out', lake, ...NOW, '--json']);
      expect([killAt, stderr]).toEqual([killAt, expect.not.stringContaining('damaged')]);
      await (harm.isOtherFileSystem ? harmed(lake, harm) : fix(lake));
      const lines = [BTC, ETH].flatMap((series) =>
        manifestLines(join(lake, series)).map((line) => JSON.stringify(line)),
      );
      expect([killAt, new Set(lines).size]).toEqual([killAt, lines.length]);
      expect([killAt, stateOf(lake)]).toEqual([killAt, unharmed]);
    }
    // The move and the commit have at least this many operations.
    expect(killAt).toBeGreaterThan(30);
  }, 300_000);
});

it('continues a move that was killed twice', async () => {
  const lake = earlier.copy();
  const killAt = (call: string, path: string): Promise<CliResult> =>
    cryptodlProcess(['verify', '--fix', '--out', lake, ...NOW], {
      env: preload(
        scene.scratch,
        `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const original = fs.promises.${call};
fs.promises.${call} = (...args) => {
  if (String(args[0]).endsWith('${path}')) process.kill(process.pid, 'SIGKILL');
  return original(...args);
};
syncBuiltinESMExports();`,
      ),
    });
  expect((await killAt('rename', `${ETH}/_manifest.jsonl`)).signal).toBe('SIGKILL');
  // The mark of an unfinished move must not be written again, because it does not exist for a moment then.
  await killAt('writeFile', '.cryptodl/upgrade');
  expect((await fix(lake)).code).toBe(0);
  expect(stateOf(lake)).toEqual(unharmed);
});

it('moves files to another file system', async () => {
  const lake = earlier.copy();
  expect((await harmed(lake, { isOtherFileSystem: true })).code).toBe(0);
  expect(stateOf(lake)).toEqual(unharmed);
});

it('removes no file that has two paths through a mount', async () => {
  const lake = earlier.copy();
  // The kernel tells one file at both paths.
  const env = preload(
    scene.scratch,
    `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const bound = (path) => String(path).replace('/_failures/', '/failures/');
for (const [module, call] of [[fs.promises, 'lstat'], [fs, 'lstatSync']]) {
  const original = module[call];
  module[call] = (path, options) => original(bound(path), options);
}
syncBuiltinESMExports();`,
  );
  const [name = ''] = filesBelow(join(lake, 'failures'));
  cpSync(join(lake, 'failures'), join(lake, '_failures'), { recursive: true });
  expect((await cryptodlProcess(['verify', '--fix', '--out', lake, ...NOW], { env })).code).toBe(0);
  expect(readFileSync(join(lake, 'failures', name), 'utf8')).not.toBe('');
});

it('lets one of two writers move, and refuses the other', async () => {
  const lake = earlier.copy();
  const env = preload(
    scene.scratch,
    `import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { rename } = fs.promises;
fs.promises.rename = async (from, to) => {
  if (/_manifest\\.jsonl$/.test(from)) {
    fs.writeFileSync('${lake}-moving', '');
    while (!fs.existsSync('${lake}-go')) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return rename(from, to);
};
syncBuiltinESMExports();`,
  );
  const first = cryptodlProcess(['verify', '--fix', '--out', lake, ...NOW], { env });
  await expect.poll(() => existsSync(`${lake}-moving`), { timeout: 60_000 }).toBe(true);
  for (const verb of ['vision', 'repair']) {
    const other = await cryptodl([verb, ...placesOf(scene, lake)]);
    expect([other.code, other.stderr]).toEqual([6, expect.stringContaining('another run is writing')]);
  }
  const read = await cryptodl(['sql', 'SELECT count(*) AS n FROM um_metrics', '--json', '--out', lake]);
  expect(read.events).toEqual([{ n: 5 * 288 }]);
  writeFileSync(`${lake}-go`, '');
  expect((await first).code).toBe(0);
  expect(stateOf(lake)).toEqual(unharmed);
});
