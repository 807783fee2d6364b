/** The alert of a run with little coverage. test/e2e/alert-webhook.test.ts has those of failures and of late data. */
import { describe, expect, it } from 'vitest';
import { useScene } from '../helpers/scene.js';

describe('a run with months and holes of single days', () => {
  const months = useScene({
    archive: [
      { cadence: 'monthly', from: '2025-01-01', to: '2026-10-31' },
      { from: '2026-11-01', to: '2026-11-04' },
      { from: '2026-11-17', to: '2026-11-20' },
    ],
    flags: '--interval 1h --symbols BTCUSDT',
  });

  it('raises no alert for twelve missing days of 690: an object of a month counts as its days', async () => {
    const run = await months.vision('--from 2025-01-01 --json');
    expect(run.summary).toMatchObject({ outcomes: { ok: 30, absent: 12 }, alerts: [] });
    expect(run.summary).toMatchObject({ datasets: [{ days: { held: 677, missing: 12 } }] });
  });
});
