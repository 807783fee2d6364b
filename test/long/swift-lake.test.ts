/** A lake in a bucket of OpenStack Swift, a real S3 server: shards as processes, one of them killed. */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { bucketOf } from '../helpers/bucket.js';
import { cryptodlProcess, cryptodlProcessOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { parquetDigests } from '../helpers/lake.js';
import { makeBucket } from '../helpers/s3-make-bucket.js';
import { HAS_SWIFT, NEEDS_SWIFT, START_MS, startSwift } from '../helpers/swift.js';
import type { SwiftServer } from '../helpers/swift.js';

const SYMBOLS = Array.from({ length: 12 }, (_, number) => `COIN${number}USDT`);
const OBJECTS = SYMBOLS.length * 4;
const SHARDS = ['0/3', '1/3', '2/3'];
const OUT = 's3://lake/of/shards';

describe.skipIf(!HAS_SWIFT)(`a lake on Swift${NEEDS_SWIFT}`, () => {
  const scratch = scratchFolder();
  let archive: TestArchive | undefined;
  let swift: SwiftServer | undefined;

  beforeAll(async () => {
    const folder = join(scratch, 'archive');
    makeArchive(folder, {
      market: 'um',
      dataset: 'klines',
      interval: '4h',
      symbols: SYMBOLS,
      from: '2026-01-01',
      to: '2026-04-30',
      cadence: 'monthly',
    });
    archive = await startArchive(folder);
    swift = await startSwift();
    await makeBucket(swift.environment, 'lake');
  }, START_MS);
  afterAll(async () => {
    await archive?.close();
    await swift?.close();
  });

  const zips = (): number => archive?.requests.filter((path) => path.endsWith('.zip')).length ?? 0;
  const environment = (): Readonly<Record<string, string>> => ({
    ...swift?.environment,
    XDG_STATE_HOME: join(scratch, 'state'),
  });
  const command = (out: string, ...more: readonly string[]): string[] =>
    'vision --interval 4h --symbols all --from 2026-01 --to 2026-04 --now 2026-11-21'
      .split(' ')
      .concat('--out', out, '--archive-url', archive?.url ?? '', FAST, more);

  /** All objects of the lake, as a folder. */
  async function copiedOut(name: string): Promise<string> {
    const { bucket } = bucketOf({ environment: environment(), address: OUT });
    const folder = join(scratch, name);
    for await (const { key } of bucket.list('')) {
      const path = join(folder, key);
      mkdirSync(dirname(path), { recursive: true });
      await bucket.get(key, path);
    }
    return folder;
  }

  it('has the files of a local lake after three shards, one of which was killed', async () => {
    const local = join(scratch, 'local');
    await cryptodlProcessOk(command(local));
    expect(zips()).toBe(OBJECTS);

    const env = environment();
    let process: ChildProcess | undefined;
    const onSpawn = (child: ChildProcess): void => {
      process = child;
    };
    const killed = cryptodlProcess(command(OUT, '--shard', '0/3'), { env, onSpawn });
    const { bucket } = bucketOf({ environment: env, address: OUT });
    // In the middle: a file is in the bucket.
    await expect
      .poll(async () => (await bucket.list('binance/').next()).done, { timeout: 60_000 })
      .toBe(false);
    process?.kill('SIGKILL');
    // On a slow machine the process may have ended before.
    expect(['SIGKILL', null]).toContain((await killed).signal);

    const runs = await Promise.all(
      SHARDS.map((shard) => cryptodlProcess(command(OUT, '--shard', shard), { env })),
    );
    expect(runs.map(({ code, stderr }) => (code === 0 ? 'ok' : stderr))).toEqual(['ok', 'ok', 'ok']);
    expect(runs.some(({ stderr }) => stderr.includes('no conditional writes'))).toBe(true);
    expect(await parquetDigests(await copiedOut('copy'))).toEqual(await parquetDigests(local));

    if (archive !== undefined) archive.requests.length = 0;
    await cryptodlProcessOk(command(OUT), { env });
    expect(zips()).toBe(0);
    await cryptodlProcessOk(['verify', '--out', OUT], { env });
    const { stdout } = await cryptodlProcessOk(
      ['sql', 'SELECT count(DISTINCT symbol) AS n FROM um_klines', '--out', OUT, '--csv'],
      { env },
    );
    expect(stdout).toBe(`n\n${SYMBOLS.length}\n`);
  }, 240_000);
});
