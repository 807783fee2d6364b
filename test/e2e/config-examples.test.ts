import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { useScene } from '../helpers/scene.js';

const CONFIG = fileURLToPath(new URL('../../config', import.meta.url));
const EXAMPLES = readdirSync(CONFIG).filter((name) => name.startsWith('vision.example.'));
const days = { symbols: ['BTCUSDT', 'ETHUSDT', 'USDCUSDT'], from: '2026-10-01', to: '2026-11-20' } as const;
const scene = useScene({
  archive: [
    { ...days, cadence: 'monthly' },
    { ...days, dataset: 'fundingRate', cadence: 'monthly' },
    { ...days, dataset: 'metrics', from: '2026-11-18' },
  ],
});
const { scratch } = scene;

describe('config/vision.example.*', () => {
  it('are there in YAML and in JSON', () => {
    expect(EXAMPLES.map((name) => name.split('.').at(-1) ?? '').sort()).toEqual(['json', 'yaml']);
  });

  it.each(EXAMPLES)('%s works as it is', async (name) => {
    const out = join(scratch, name);
    const where = ['--archive-url', scene.archive.url, '--now', '2026-11-21T12:00:00Z', '--out', out];
    const { stderr } = await cryptodlOk(['vision', '--config', join(CONFIG, name), ...where, ...FAST]);
    expect(stderr).toMatch(/^\d+ ok in /m);
    expect(filesBelow(join(out, 'binance')).length).toBeGreaterThan(1);
    expect(filesBelow(join(out, 'binance')).join()).not.toContain('USDCUSDT');
  });
});
