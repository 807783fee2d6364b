import { expect, it } from 'vitest';
import { isZip, useScene } from '../helpers/scene.js';

const DAYS = 5;
const scene = useScene({
  archive: [{ from: '2026-11-16', to: '2026-11-20' }],
  isTimeVirtual: true,
  flags: `--symbols BTCUSDT --interval 1h --days ${DAYS} --force --retries 0 --json`,
});
const isDay = (day: number) => (path: string) => isZip(path) && path.endsWith(`-${day}.zip`);

it('--force does not fetch the objects again that an earlier round of the same run wrote', async () => {
  scene.answerFirst(isDay(18), (_request, response) => response.writeHead(503).end());
  const run = await scene.vision();
  expect(run.summary['outcomes']).toMatchObject({ ok: DAYS, failed: 0 });
  expect(scene.archive.requests.filter(isZip)).toHaveLength(DAYS + 1);
  expect(await scene.rows(run)).toHaveLength(DAYS * 24);
});

it('an object has one outcome if a rewrite needs further rounds because of another object of the held file', async () => {
  const lake = 'held';
  await scene.vision('', { lake });
  scene.archive.requests.length = 0;
  let asked = 0;
  scene.answer(
    (path) => (isDay(18)(path) && ++asked === 1) || isDay(19)(path),
    (_request, response, path) => response.writeHead(isDay(19)(path) ? 404 : 503).end(),
  );
  const run = await scene.vision('', { lake });
  const { outcomes } = run.summary as { outcomes: Record<string, number> };
  expect(Object.values(outcomes).reduce((sum, count) => sum + count, 0)).toBe(DAYS);
});
