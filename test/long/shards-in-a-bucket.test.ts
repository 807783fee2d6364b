/** Four shards beside each other write one lake in a bucket. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { cryptodlProcess, cryptodlProcessOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { lakeInBucket } from '../helpers/lake-kinds.js';
import { parquetDigests } from '../helpers/lake.js';
import { S3Server } from '../helpers/s3-server.js';

const SHARDS = [0, 1, 2, 3].map((shard) => `${shard}/4`);
/** Thirty series of ten months. */
const SYMBOLS = Array.from({ length: 30 }, (_, number) => `COIN${number}USDT`);
const OBJECTS = SYMBOLS.length * 10;

const scratch = scratchFolder();
let archive: TestArchive;
const servers: S3Server[] = [];

beforeAll(async () => {
  const folder = join(scratch, 'archive');
  const range = { from: '2026-01-01', to: '2026-10-31' };
  makeArchive(folder, {
    market: 'um',
    dataset: 'klines',
    interval: '4h',
    symbols: SYMBOLS,
    ...range,
    cadence: 'monthly',
  });
  archive = await startArchive(folder);
});
afterAll(async () => {
  for (const server of servers) await server.close();
  await archive.close();
});

const zips = (): number => archive.requests.filter((path) => path.endsWith('.zip')).length;

const SELECTION = 'vision --interval 4h --symbols all --from 2026-01 --to 2026-10 --now 2026-11-21';

const command = (out: string, ...more: readonly string[]): string[] =>
  SELECTION.split(' ').concat('--out', out, '--archive-url', archive.url, FAST, more);

describe('four shards side by side', () => {
  it.each(['kept', 'refused'] as const)(
    'write the lake of one run when conditional writes are %s, and ask for no zip again',
    async (conditions) => {
      const server = await new S3Server({ conditions }).listen();
      servers.push(server);
      const local = join(scratch, `local-${conditions}`);
      await cryptodlProcessOk(command(local));
      expect(zips()).toBe(OBJECTS);

      archive.requests.length = 0;
      const lake = lakeInBucket(server, 'shared/lake', scratch);
      const run = (shard: string) =>
        cryptodlProcess(command(lake.out, '--shard', shard, '--json'), { env: lake.environment });
      const first = await Promise.all(SHARDS.map(run));
      expect(first.map(({ code, stderr }) => [code, /error|fail/i.exec(stderr)])).toEqual(
        SHARDS.map(() => [0, null]),
      );
      expect(zips()).toBe(OBJECTS);
      expect(await parquetDigests(lake.content())).toEqual(await parquetDigests(local));
      // No partition was written twice.
      const puts = server.requests.filter(
        ({ method, key, status }) => method === 'PUT' && status === 200 && key.endsWith('.parquet'),
      );
      expect(new Set(puts.map(({ key }) => key)).size).toBe(puts.length);

      archive.requests.length = 0;
      server.requests.length = 0;
      const again = await Promise.all(SHARDS.map(run));
      expect(again.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
      expect(zips()).toBe(0);
      const written = server.requests.filter(
        ({ method, key }) => method === 'PUT' && !key.includes('/.cryptodl/runs/'),
      );
      expect(written.map(({ key }) => key)).toEqual([]);

      const verified = await cryptodlProcess(['verify', '--out', lake.out], { env: lake.environment });
      expect([verified.code, verified.stdout + verified.stderr]).toEqual([
        0,
        expect.stringContaining(`${SYMBOLS.length} series, ${OBJECTS} files`),
      ]);
    },
  );
});
