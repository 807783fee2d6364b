/** The files of `cryptodl plot` in a real Chromium: two sizes, two themes, zoom by buttons and by pointer. */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import {
  BROWSER_NEEDED,
  drawnShare,
  HAS_BROWSER,
  openFile,
  seriousFindings,
  settled,
  startBrowser,
} from '../helpers/browser.js';
import type { Look } from '../helpers/browser.js';
import { cryptodlOk, FAST } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const WIDE: Look = { width: 1280, height: 800, theme: 'light' };
const PHONE: Look = { width: 360, height: 740, theme: 'light' };
const LOOKS: readonly Look[] = [WIDE, { ...WIDE, theme: 'dark' }, PHONE, { ...PHONE, theme: 'dark' }];
const BACKGROUNDS = { dark: ['rgb(18, 22, 29)'], light: ['rgb(245, 246, 248)', 'rgb(255, 255, 255)'] };

describe.skipIf(!HAS_BROWSER)(`the files of cryptodl plot${BROWSER_NEEDED}`, () => {
  const scratch = scratchFolder();
  const lake = join(scratch, 'lake');
  const fileOf = (kind: string): string => join(scratch, `${kind}.html`);
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
    const folder = join(scratch, 'archive');
    const days = { market: 'um', symbols: ['BTCUSDT'], from: '2024-01-01', to: '2024-01-31' } as const;
    makeArchive(folder, { ...days, cadence: 'daily', dataset: 'klines', interval: '15m' });
    makeArchive(folder, { ...days, cadence: 'monthly', dataset: 'fundingRate' });
    const archive = await startArchive(folder);
    const vision = ['vision', '--archive-url', archive.url, '-s', 'BTCUSDT', '-o', lake, ...FAST];
    await cryptodlOk([...vision, '-i', '15m', '--from', '2024-01-01', '--to', '2024-01-10']);
    await cryptodlOk([...vision, '-i', '15m', '--from', '2024-01-14', '--to', '2024-01-31']);
    await cryptodlOk([...vision, '--dataset', 'fundingRate', '--from', '2024-01', '--to', '2024-01']);
    await archive.close();
    for (const [kind, ...flags] of [['candles'], ['line', '--column', 'last_funding_rate']])
      await cryptodlOk(['plot', 'BTCUSDT', '-o', lake, ...flags, '--html', fileOf(String(kind))]);
  }, 60_000);
  afterAll(() => browser.close());

  it.each(LOOKS)(
    'pages, $width × $height, $theme: drawn, readable, quiet, without a request',
    async (look) => {
      for (const kind of ['candles', 'line']) {
        const file = fileOf(kind);
        const { page, said, requests } = await openFile(browser, file, look);
        const [wide, room] = await page.evaluate<number[]>(
          '[document.documentElement.scrollWidth, innerWidth]',
        );
        expect(wide).toBeLessThanOrEqual(room ?? 0);
        expect(await drawnShare(browser, await page.locator('canvas').screenshot())).toBeGreaterThan(0.03);
        const background = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
        expect(BACKGROUNDS[look.theme]).toContain(background);
        await page.locator('summary').click();
        expect(await seriousFindings(page)).toEqual([]);
        expect(said).toEqual([]);
        expect(requests).toEqual([`file://${file}`]);
        await page.close();
      }
    },
    60_000,
  );

  it('zoom by buttons, shift, zoom by the pointer, and show the values under it', async () => {
    const { page } = await openFile(browser, fileOf('candles'), WIDE);
    const whole = await page.locator('canvas').screenshot();
    await page.getByRole('button', { name: 'Zoom in' }).focus();
    await page.keyboard.press('Enter');
    await settled(page);
    const half = await page.locator('canvas').screenshot();
    expect(half.equals(whole)).toBe(false);
    await page.getByRole('button', { name: 'Later' }).click();
    await settled(page);
    expect((await page.locator('canvas').screenshot()).equals(half)).toBe(false);
    await page.getByRole('button', { name: 'Zoom out' }).click();
    await settled(page);
    const box = (await page.locator('.u-over').boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
    expect(await page.locator('.u-legend').innerText()).toMatch(
      /time \(UTC\)\s*2024-01-\d\d \d\d:\d\d\s*close\s*[\d,.]+\s*open\s*[\d,.]+\s*high\s*[\d,.]+\s*low\s*[\d,.]+\s*volume\s*[\d,.]+/,
    );
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 3, box.y + box.height / 2);
    await page.mouse.up();
    await settled(page);
    expect((await page.locator('canvas').screenshot()).equals(whole)).toBe(false);
    await page.close();
  }, 60_000);

  it('name the missing days with the command that fetches them', async () => {
    const { page } = await openFile(browser, fileOf('candles'), WIDE);
    expect(await page.locator('.notes').innerText()).toMatch(
      /missing: 2024-01-11 … 2024-01-13 .*\n.*cryptodl repair --out .* -m um --dataset klines -i 15m -s BTCUSDT/,
    );
    await page.close();
  }, 60_000);
});
