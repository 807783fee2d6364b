/** `verify --fix` and `repair` of a lake in a bucket: which files they change. */
import { beforeEach, describe, expect, it } from 'vitest';
import { bucketScene, dayOf, FOLDER, isPut, MANIFEST, MONTH } from '../helpers/bucket-scene.js';
import { cryptodl, cryptodlProcess, FAST } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import type { TestLake } from '../helpers/lake-kinds.js';

const MINUTE_MS = 60_000;

describe('the fix of a lake in a bucket', () => {
  const { begin, server, archive, vision, days, isSound, newLake } = bucketScene();
  let lake: TestLake;
  beforeEach(() => {
    ({ lake } = begin());
  });

  const env = (): Readonly<Record<string, string>> => lake.environment;
  const verify = (...flags: readonly string[]): Promise<CliResult> =>
    cryptodl(['verify', ...flags, '--out', lake.out], { env: env() });
  const quarantined = (): string[] =>
    [...server.objects.keys()].filter((key) => key.startsWith(`${prefix()}/_quarantine/`));
  const prefix = (): string => lake.out.slice(`s3://${server.bucket}/`.length);
  /** A file of the lake that was put so long ago. */
  const put = (path: string, content: Buffer | string, ageMs: number): void => {
    server.store(`${prefix()}/${path}`, content, {}, ageMs);
  };

  it.each([
    ['verify', '--fix'],
    ['repair', '--quiet'],
  ])(
    'by %s leaves the file that a run has put, and whose manifest the run has not put yet',
    async (verb, flag) => {
      const byDay = ['--partition', 'day'];
      await vision(1, 2, byDay);
      let fixed: CliResult | undefined;
      server.fault = async (record) => {
        if (fixed !== undefined || !isPut(record, MANIFEST)) return undefined;
        server.fault = undefined;
        const words = [verb, flag, '--out', lake.out, '--archive-url', archive().url, ...FAST];
        fixed = await cryptodlProcess(verb === 'verify' ? words.slice(0, 4) : words, { env: env() });
        return undefined;
      };
      expect((await vision(3, 4, byDay)).code).toBe(0);
      expect(fixed?.stdout + String(fixed?.stderr)).toContain('another run may be writing it');
      expect(quarantined()).toEqual([]);
      expect(await days()).toEqual([1, 2, 3, 4]);
      expect(await isSound()).toBe(true);
    },
  );

  it('leaves unlisted and foreign files of the last minutes by the clock of the server, and takes older ones', async () => {
    await vision(1, 2);
    const other = newLake();
    await vision(3, 4, ['--partition', 'day'], other.out);
    const paths = [
      `${FOLDER}/symbol=BTCUSDT/${dayOf(3)}.parquet`,
      `${FOLDER}/symbol=BTCUSDT/mine.bin`,
      'binance/um/stray.txt',
    ];
    for (const path of paths) put(path, 'of another run', 14 * MINUTE_MS);
    const left = await verify('--fix');
    expect(left.code).toBe(4);
    expect(left.stdout.match(/another run may be writing it/g)).toHaveLength(3);
    expect(quarantined()).toEqual([]);
    for (const path of paths) put(path, 'of a killed run', 16 * MINUTE_MS);
    await verify('--fix');
    expect(quarantined().filter((path) => !path.endsWith('.cause'))).toHaveLength(3);
    expect(filesBelow(lake.content()).filter((path) => paths.includes(path))).toEqual([]);
  });

  it.each([[], ['--fix']])(
    'takes no file for a missing one that a run puts after the listing (%s)',
    async (...flags) => {
      const byDay = ['--partition', 'day'];
      await vision(1, 2, byDay);
      const other = newLake();
      await vision(1, 4, byDay, other.out);
      let isDone = false;
      server.fault = ({ method, key }) => {
        if (isDone || method !== 'GET' || !key.endsWith(MANIFEST)) return undefined;
        isDone = true;
        for (const path of [3, 4].map((day) => `${FOLDER}/symbol=BTCUSDT/${dayOf(day)}.parquet`))
          put(path, other.read(path), 0);
        put(MANIFEST, other.read(MANIFEST), 0);
        return undefined;
      };
      expect(await verify(...flags)).toMatchObject({ code: 0, stdout: '' });
      expect(isDone).toBe(true);
    },
  );

  it('ignores objects below the name of a partition, and an object with the name of a folder', async () => {
    await vision(1, 2);
    for (const path of [`${MONTH}/inner`, `${FOLDER}/symbol=BTCUSDT/2026-12.parquet/inner`, 'binance/um'])
      put(path, 'of another program', 60 * MINUTE_MS);
    const found = await verify('--fix');
    expect(found).toMatchObject({ code: 0, stdout: '' });
    expect(found.stderr).toContain('binance/um cannot be a file of a lake');
    expect(quarantined()).toEqual([]);
    expect((await vision(3, 4)).code).toBe(0);
    const others = [...server.objects].filter(([, { bytes }]) => bytes.toString() === 'of another program');
    expect(others).toHaveLength(3);
    for (const [key] of others) server.objects.delete(key);
    expect(await days()).toEqual([1, 2, 3, 4]);
  });

  it('does not remove an old file that another run lists in the manifest before the removal', async () => {
    await vision(1, 2);
    const other = newLake();
    await vision(1, 2, ['--partition', 'day'], other.out);
    const [first = '', second = ''] = [1, 2].map((day) => `${FOLDER}/symbol=BTCUSDT/${dayOf(day)}.parquet`);
    // A run with --force was killed before its manifest.
    put(first, other.read(first), 60 * MINUTE_MS);
    let isDone = false;
    server.fault = ({ method, key }) => {
      if (isDone || method !== 'PUT' || !key.includes('/_quarantine/')) return undefined;
      isDone = true;
      // The same run is done again and ends.
      for (const path of [second, MANIFEST]) put(path, other.read(path), 0);
      lake.change(MONTH, undefined);
      return undefined;
    };
    await verify('--fix');
    expect(isDone).toBe(true);
    expect(await days()).toEqual([1, 2]);
    expect(lake.read(MANIFEST)).toEqual(other.read(MANIFEST));
    expect(await isSound()).toBe(true);
  });
});
