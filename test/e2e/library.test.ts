import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { TaskOutcome, VisionOptions } from '../../src/library.js';
import { vision } from '../../src/library.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { filesBelow, parquetDigests } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const NOW = '2026-11-21T12:00:00Z';
const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-10', to: '2026-11-20' }],
});
const { scratch } = scene;

function options(out: string, more: VisionOptions = {}): VisionOptions {
  return {
    market: 'um',
    interval: '1h',
    symbols: ['BTCUSDT', 'ETHUSDT'],
    days: 3,
    now: NOW,
    out: join(scratch, out),
    archiveUrl: scene.archive.url,
    retryDelay: 2,
    breakerOpen: '100ms',
    maxWait: '20s',
    ...more,
  };
}

async function all(outcomes: AsyncIterable<TaskOutcome>): Promise<TaskOutcome[]> {
  const found: TaskOutcome[] = [];
  for await (const outcome of outcomes) found.push(outcome);
  return found;
}

async function refusal(act: () => Promise<unknown>): Promise<unknown> {
  return act().then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("import { vision } from 'cryptodl'", () => {
  it('runs the example of the README as it stands there', async () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const example = /```js\n(.*?)```/s.exec(readme)?.[1] ?? '';
    expect(example).toContain("import { vision } from 'cryptodl'");
    const folder = join(scratch, 'example');
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(ROOT, join(folder, 'node_modules/cryptodl'));
    // The example reads the real archive; only the place and the day are set here.
    const local = example.replace('days: 2', `days: 2, archiveUrl: '${scene.archive.url}', now: '${NOW}'`);
    expect(local).not.toBe(example);
    writeFileSync(join(folder, 'example.mjs'), local);
    const child = spawn(process.execPath, ['example.mjs'], { cwd: folder });
    const said: string[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => said.push(String(data)));
    const code = await new Promise((resolve) => {
      child.on('close', resolve);
    });
    expect([said.join(''), code]).toEqual(['4 objects, 96 rows, exit code 0\n', 0]);
    expect(filesBelow(join(folder, 'data/binance'), '.parquet')).toHaveLength(2);
  });

  it('gives one outcome per object, and the numbers of the run', async () => {
    const plans: string[] = [];
    const run = vision(options('outcomes'), { onPlan: ({ what, range }) => plans.push(`${what}, ${range}`) });
    const outcomes = await all(run);
    expect(outcomes.map(({ symbol, period, outcome }) => `${symbol} ${period} ${outcome}`).sort()).toEqual(
      ['BTCUSDT', 'ETHUSDT'].flatMap((symbol) =>
        ['18', '19', '20'].map((day) => `${symbol} 2026-11-${day} ok`),
      ),
    );
    expect(outcomes[0]).toMatchObject({
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      cadence: 'daily',
      rows: 24,
    });
    expect(JSON.parse(JSON.stringify(outcomes))).toEqual(outcomes);
    expect(plans).toEqual(['um klines 1h, 2026-11-18 … 2026-11-20 (3 days)']);
    const summary = await run.summary();
    expect(summary).toMatchObject({
      outcomes: { ok: 6, failed: 0 },
      rows: 144,
      files: 2,
      exitCode: 0,
      failures: null,
    });
  });

  it('makes the same lake as the command line', async () => {
    await all(vision(options('by-library')));
    const flags = ['--interval', '1h', '--symbols', 'BTCUSDT,ETHUSDT', '--days', '3', '--now', NOW];
    const out = join(scratch, 'by-command');
    await cryptodlOk(['vision', ...flags, '--archive-url', scene.archive.url, '--out', out, ...FAST]);
    expect(await parquetDigests(out)).toEqual(await parquetDigests(join(scratch, 'by-library')));
  });

  it('runs without a loop, and a second run skips the held objects', async () => {
    expect((await vision(options('twice')).summary()).outcomes.ok).toBe(6);
    scene.archive.requests.length = 0;
    expect((await vision(options('twice')).summary()).outcomes).toMatchObject({ ok: 0, skipped: 6 });
    expect(scene.archive.objectRequests()).toEqual([]);
  });

  it('does nothing before the first outcome is requested', async () => {
    scene.archive.requests.length = 0;
    vision(options('unasked'));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(scene.archive.requests).toEqual([]);
  });

  it('tells a failed object as an outcome, and where the failure report is', async () => {
    scene.archive.fault = (path, _, response) => {
      if (!path.endsWith('BTCUSDT-1h-2026-11-19.zip')) return false;
      response.writeHead(500).end();
      return true;
    };
    const run = vision(options('failing', { retries: 0 }));
    const failed = (await all(run)).filter(({ outcome }) => outcome === 'failed');
    scene.archive.fault = undefined;
    expect(failed).toMatchObject([{ period: '2026-11-19', code: 'http-server-error', retryable: true }]);
    const { exitCode, failures } = await run.summary();
    expect(exitCode).toBe(3);
    expect(readFileSync(failures ?? '', 'utf8')).toContain('BTCUSDT-1h-2026-11-19.zip');
  });

  it('leaving the loop ends the run, frees the lock and keeps the committed files', async () => {
    for await (const outcome of vision(options('left', { partition: 'day', concurrency: 1 }))) {
      expect(outcome.outcome).toBe('ok');
      break;
    }
    const again = await vision(options('left', { partition: 'day' })).summary();
    expect(again.outcomes.skipped).toBeGreaterThan(0);
    expect(again.outcomes.ok + again.outcomes.skipped).toBe(6);
  });

  it("passes on the caller's own error from onPlan as it is", async () => {
    const mine = new RangeError('mine');
    const onPlan = (): never => {
      throw mine;
    };
    expect(await refusal(() => vision(options('refused-plan'), { onPlan }).summary())).toBe(mine);
  });

  it.each([
    [{ days: 0 }, 'days: "0" is not a whole number of at least 1'],
    [{ dryRun: true }, 'vision has no option "dryRun"'],
    [{ symbols: [] }, 'symbols is empty'],
    [{ from: new Date('never') }, 'from is not a valid Date'],
    [{ from: '05/01/2024' }, 'from: "05/01/2024" is not a date'],
  ])('options %j are refused at once', (wrong, says) => {
    expect(() => vision({ symbols: 'BTCUSDT', ...wrong })).toThrow(says);
  });

  it('takes a Date for a day and numbers for durations and sizes', async () => {
    const { days: _, ...rest } = options('typed');
    const from = new Date('2026-11-15T00:00:00Z');
    const run = vision({
      ...rest,
      from,
      to: '2026-11-16',
      connectTimeout: 4000,
      maxBytes: 10_000_000,
      retries: 1,
    });
    expect((await run.summary()).outcomes.ok).toBe(4);
  });
});
