import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { makeZip } from '../../scripts/make-zip.js';
import { FAST, argv, cryptodl } from '../helpers/cli.js';
import type { CliResult } from '../helpers/cli.js';
import { filesBelow, readParquet } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const PREFIX = 'data/futures/um/daily/metrics/BTCUSDT';
const keyOf = (day: string): string => `${PREFIX}/BTCUSDT-metrics-${day}.zip`;
const MISSING = keyOf('2026-10-05');
const TRUNCATED = keyOf('2026-10-10');
const WRONG_SUM = keyOf('2026-10-15');
const BROKEN_ZIP = keyOf('2026-10-20');
const BAD_ROW = keyOf('2026-10-25');

interface ReportLine {
  readonly kind: string;
  readonly key: string;
  readonly code: string;
  readonly retryable: boolean;
  readonly attempts: number;
  readonly message: string;
}

describe('a month with five bad objects', () => {
  const scene = useScene({ archive: [{ dataset: 'metrics', from: '2026-10-01', to: '2026-10-31' }] });
  const { scratch, folder } = scene;
  const sound = new Map<string, Buffer>();
  beforeAll(() => {
    for (const key of [MISSING, TRUNCATED, WRONG_SUM, BROKEN_ZIP, BAD_ROW]) {
      for (const path of [key, `${key}.CHECKSUM`]) sound.set(path, readFileSync(join(folder, path)));
    }
  });
  beforeEach(repair);

  function repair(): void {
    for (const [path, bytes] of sound) writeFileSync(join(folder, path), bytes);
  }
  function put(key: string, bytes: Buffer): void {
    writeFileSync(join(folder, key), bytes);
  }
  function putWithSum(key: string, bytes: Buffer): void {
    put(key, bytes);
    const digest = createHash('sha256').update(bytes).digest('hex');
    writeFileSync(join(folder, `${key}.CHECKSUM`), `${digest}  ${key.slice(PREFIX.length + 1)}\n`);
  }
  function breakRetryably(): void {
    for (const path of [MISSING, `${MISSING}.CHECKSUM`]) rmSync(join(folder, path));
    put(TRUNCATED, zipOf(TRUNCATED).subarray(0, 5000));
    put(WRONG_SUM, makeZip([{ name: 'BTCUSDT-metrics-2026-10-15.csv', data: 'not the published bytes\n' }]));
  }
  function breakForGood(): void {
    const flipped = Buffer.from(zipOf(BROKEN_ZIP));
    flipped[flipped.length >> 1] = (flipped[flipped.length >> 1] ?? 0) ^ 0xff;
    putWithSum(BROKEN_ZIP, flipped);
    const header =
      'create_time,symbol,sum_open_interest,sum_open_interest_value,count_toptrader_long_short_ratio,sum_toptrader_long_short_ratio,count_long_short_ratio,sum_taker_long_short_vol_ratio';
    const rows = '2026-10-25 00:00:00,BTCUSDT,1,2,3,4,5,6\n2026-10-25 00:05:00,BTCUSDT,1,oops,3,4,5,6\n';
    putWithSum(BAD_ROW, makeZip([{ name: 'BTCUSDT-metrics-2026-10-25.csv', data: `${header}\n${rows}` }]));
  }
  function zipOf(key: string): Buffer {
    return sound.get(key) ?? Buffer.alloc(0);
  }

  const run = (out: string, flags: readonly string[] = []): Promise<CliResult> =>
    cryptodl(argv`vision --dataset metrics --symbols BTCUSDT --from 2026-10-01 --to 2026-10-31 --archive-url
      ${scene.archive.url} --out ${out} --json ${FAST} ${flags}`);
  const reportOf = (out: string): string =>
    join(out, '_failures', filesBelow(join(out, '_failures'))[0] ?? '');
  const linesOf = (file: string): ReportLine[] =>
    readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as ReportLine);

  it('completes everything else, names four failures and the absence with typed codes, and ends with 3', async () => {
    breakRetryably();
    breakForGood();
    const out = join(scratch, 'all-five');
    const result = await run(out);
    expect(result.code).toBe(3);
    expect(result.events.at(-1)).toMatchObject({
      outcomes: { ok: 26, absent: 1, failed: 4 },
      absent: { hole: 1 },
      exitCode: 3,
    });
    const lines = linesOf(reportOf(out));
    const codes = Object.fromEntries(
      lines
        .slice(1)
        .map((line) => [line.key, `${line.kind} ${line.code} ${line.retryable ? 'retryable' : 'permanent'}`]),
    );
    expect(codes).toEqual({
      [TRUNCATED]: 'failed zip-truncated retryable',
      [WRONG_SUM]: 'failed sidecar-stale retryable',
      [BROKEN_ZIP]: 'failed zip-broken permanent',
      [BAD_ROW]: 'failed row-malformed permanent',
    });
    expect(lines.find((line) => line.key === BAD_ROW)?.message).toBe(
      'BTCUSDT-metrics-2026-10-25.csv line 3: sum_open_interest_value is "oops", not a finite number',
    );
    const rows = await readParquet(join(out, 'binance/um/metrics/symbol=BTCUSDT/2026-10.parquet'));
    expect(rows).toHaveLength(26 * 288);
    for (const key of [MISSING, TRUNCATED, WRONG_SUM, BROKEN_ZIP, BAD_ROW])
      expect(result.stderr).toContain(key);
  });

  it('leaves failed days to repair, also behind the last held day', async () => {
    breakForGood();
    const out = join(scratch, 'to-repair');
    await run(out, ['--to', '2026-10-25']);
    const covered = await cryptodl(['coverage', '--out', out, '--json']);
    expect(covered.events[0]).toMatchObject({ to: '2026-10-26T00:00:00.000Z', missing: 2 * 288 });
    repair();
    const fetch = ['--out', out, '--archive-url', scene.archive.url, '--json', ...FAST];
    scene.archive.requests.length = 0;
    const { code, events } = await cryptodl(['repair', ...fetch]);
    expect([code, events.at(-1)]).toMatchObject([0, { outcomes: { ok: 2, failed: 0 } }]);
    const zips = scene.archive.requests.filter((path) => path.endsWith('.zip'));
    expect(zips.sort()).toEqual([`/${BROKEN_ZIP}`, `/${BAD_ROW}`]);
  });

  it('ends with 4 when no failure may succeed later, and with 0 when nothing but an absence is left', async () => {
    breakForGood();
    const permanent = await run(join(scratch, 'permanent'));
    expect([permanent.code, permanent.stderr]).toEqual([
      4,
      expect.stringMatching(
        /^ {2}next {7}run the same command again later: a retry now fails the same way; \S+\.jsonl names the objects$/m,
      ),
    ]);
    expect(permanent.stderr).not.toContain('cryptodl retry');
    const gapsOf = async (): Promise<unknown> => {
      const days = ['--from', '2026-10-01', '--to', '2026-10-31'];
      const { events } = await cryptodl(['coverage', '--out', join(scratch, 'permanent'), ...days, '--json']);
      return events.find(({ event }) => event === 'series')?.['gaps'];
    };
    expect(await gapsOf()).toMatchObject([
      { reason: 'failed:zip-broken' },
      { reason: 'failed:row-malformed' },
    ]);
    repair();
    await run(join(scratch, 'permanent'));
    expect(await gapsOf()).toEqual([]);
    for (const path of [MISSING, `${MISSING}.CHECKSUM`]) rmSync(join(folder, path));
    const out = join(scratch, 'absent-only');
    expect((await run(out)).code).toBe(0);
    expect(existsSync(join(out, '_failures'))).toBe(false);
    expect((await run(join(scratch, 'strict'), ['--strict'])).code).toBe(4);
  });

  it('retry on a repaired archive ends with 0 and no report, and the next run completes the lake', async () => {
    breakRetryably();
    breakForGood();
    const out = join(scratch, 'retried');
    await run(out);
    const report = reportOf(out);
    const still = await cryptodl(['retry', report, '--json', ...FAST]);
    expect(still.code).toBe(3);
    expect(
      linesOf(report)
        .slice(1)
        .map((line) => line.code)
        .sort(),
    ).toEqual(['row-malformed', 'sidecar-stale', 'zip-broken', 'zip-truncated']);
    repair();
    const repaired = await cryptodl(['retry', report, '--json', ...FAST]);
    expect(repaired.code).toBe(0);
    expect(repaired.events.at(-1)).toMatchObject({ outcomes: { ok: 4, failed: 0 } });
    expect(existsSync(report)).toBe(false);
    // A retry takes the failures, and a later run the day that was absent.
    await run(out, ['--force']);
    const whole = join(scratch, 'whole');
    await run(whole);
    const file = 'binance/um/metrics/symbol=BTCUSDT/2026-10.parquet';
    expect(await readParquet(join(out, file))).toEqual(await readParquet(join(whole, file)));
  });

  it('a missing sidecar is a warning with its own count, and the zip itself decides', async () => {
    scene.archive.fault = (path, _request, response) => {
      if (!path.endsWith('.CHECKSUM')) return false;
      response.writeHead(404).end();
      return true;
    };
    const flipped = Buffer.from(zipOf(BROKEN_ZIP));
    flipped[flipped.length >> 1] = (flipped[flipped.length >> 1] ?? 0) ^ 0x01;
    put(BROKEN_ZIP, flipped);
    const result = await run(join(scratch, 'no-sidecars'));
    scene.archive.fault = undefined;
    expect(result.events.at(-1)).toMatchObject({
      outcomes: { ok: 30, failed: 1 },
      unverified: 0,
      noSidecars: 30,
      failed: { 'zip-broken': 1 },
      exitCode: 4,
    });
    expect(result.stderr).toContain('  30 no checksum published, checked by ETag\n');
  });

  it('a sidecar that fails for good does not have its zip downloaded for every try', async () => {
    scene.archive.requests.length = 0;
    scene.archive.fault = (path, _request, response) => {
      if (path !== `/${WRONG_SUM}.CHECKSUM`) return false;
      response.writeHead(503).end();
      return true;
    };
    const result = await run(join(scratch, 'failing-sidecar'));
    scene.archive.fault = undefined;
    expect(result.code).toBe(3);
    // One per round: the first and three further ones.
    expect(scene.archive.requests.filter((path) => path === `/${WRONG_SUM}`)).toHaveLength(4);
  });
});
