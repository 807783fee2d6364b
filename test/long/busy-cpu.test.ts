/** A machine that is too slow for its run: the closing block names the CPU, and the search of the level of concurrency learns nothing. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isZip, useScene } from '../helpers/scene.js';

const scene = useScene({
  archive: [{ from: '2026-10-22', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT --verify none --days 30',
});

describe('the search of the level of concurrency', () => {
  const symbols = ['A', 'B', 'C', 'D'].map((letter) => `${letter}USDT`);
  const many = useScene({
    archive: [{ symbols, from: '2026-10-22', to: '2026-11-20' }],
    flags: '--interval 1h --symbols all --days 30 --concurrency auto:4 --json',
    isTimeVirtual: true,
  });

  it.each([
    ['tries fewer objects when they take longer', 0, true],
    ['does not while the work of this process is late', 150, false],
  ])('%s', async (_, busyMs, hasTried) => {
    let zips = 0;
    many.answer(isZip, (request, response) => {
      zips += 1;
      const end = performance.now() + (zips < 60 ? busyMs : 0);
      while (performance.now() < end);
      many.after(zips > 35 ? 400 : 100, () => {
        many.archive.serve(request, response);
      });
    });
    const { code, events } = await many.vision();
    expect([code, events.some(({ why }) => why === 'trying-fewer')]).toEqual([0, hasTried]);
  });
});

describe('the closing block', () => {
  it('names a CPU that is busy, in a run of more than ten seconds', async () => {
    scene.delay(isZip, 4000);
    const script = join(scene.scratch, 'busy.mjs');
    const busy = 'const end = performance.now() + 150; while (performance.now() < end);';
    writeFileSync(script, `setInterval(() => { ${busy} }, 160).unref();`);
    const result = await scene.vision('--concurrency 10', { env: { NODE_OPTIONS: `--import ${script}` } });
    const line =
      / {2}bottleneck the CPU: this process was busy, and its work was up to .* late, \d+ % of the run: /;
    expect([result.code, result.stderr]).toEqual([0, expect.stringMatching(line)]);
  });
});
