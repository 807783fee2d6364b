/** The time that a run tells: from the start of the command, by phase and by stage. Servers make the lower bounds. */
import { describe, expect, it } from 'vitest';
import type { CliResult } from '../helpers/cli.js';
import { isZip, useScene } from '../helpers/scene.js';

interface Times {
  readonly planMs: number;
  readonly pausedMs: number;
  readonly workMs: number;
  readonly stagesMs: Readonly<Record<'wait' | 'transfer' | 'check' | 'convert' | 'commit', number>>;
}

const OBJECTS = 4;
const DAYS = { from: '2026-11-17', to: '2026-11-20' };
const FLAGS = `--interval 1h --symbols BTCUSDT --days ${OBJECTS} --json`;

function timesOf({ events }: CliResult): Times & { elapsedMs: number } {
  const { elapsedMs, times } = events.at(-1) as unknown as { elapsedMs: number; times: Times };
  return { elapsedMs, ...times };
}

/** A process that takes so long until its first line of code. */
const SLOW_START = {
  NODE_OPTIONS: '--import data:text/javascript,await(new(Promise)(r=>setTimeout(r,1200)))',
};

describe('the time of a run', () => {
  const scene = useScene({ archive: [DAYS], flags: FLAGS, isTimeVirtual: true });

  it('begins with the process', async () => {
    const result = await scene.vision([], { env: SLOW_START, clock: undefined });
    expect(result.code).toBe(0);
    expect(timesOf(result).planMs).toBeGreaterThanOrEqual(1200);
  });
});

describe('the stages of objects in the summary', () => {
  const scene = useScene({
    archive: [DAYS, { ...DAYS, interval: '1m' }],
    venue: { symbols: [{ symbol: 'BTCUSDT', host: 'fapi' }] },
    flags: FLAGS,
  });

  it('have transfer, check, convert and commit', async () => {
    scene.delay(isZip, 300);
    const result = await scene.vision();
    expect(result.code).toBe(0);
    const { stagesMs } = timesOf(result);
    expect(stagesMs.transfer).toBeGreaterThanOrEqual(OBJECTS * 300);
    for (const stage of ['check', 'convert', 'commit'] as const) expect(stagesMs[stage]).toBeGreaterThan(0);
  });
});
