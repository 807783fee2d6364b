/** The file of `cryptodl report` in a real Chromium: two sizes, two themes, pointer, keyboard, and a large lake. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
import { argv, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import {
  daysBefore,
  makeMonths,
  makeSeries,
  runRecord,
  writeFailures,
  writeRecord,
} from '../helpers/report-lake.js';

const PICTURE = fileURLToPath(new URL('../../docs/report.png', import.meta.url));
const DAY_MS = 86_400_000;
const START = Date.parse('2026-11-20T08:00:00Z');
const NAMES = ['ADA', 'AVAX', 'BNB', 'BTC', 'DOGE', 'DOT', 'ETH', 'LINK', 'LTC', 'SOL', 'TRX', 'XRP'];
const HOSTILE = '</script><img src=x onerror=alert(1)> "quoted"';

const ALERTS = [
  { id: 'retry-rate', text: 'retry rate 12 %, more than 10 %', advice: 'cryptodl doctor checks the network' },
  { id: 'failed-again', text: HOSTILE, advice: 'cryptodl runs lists the runs' },
];

const WIDE: Look = { width: 1280, height: 800, theme: 'light' };
const LOOKS: readonly Look[] = [
  WIDE,
  { ...WIDE, theme: 'dark' },
  { width: 360, height: 740, theme: 'light' },
  { width: 360, height: 740, theme: 'dark' },
];

describe.skipIf(!HAS_BROWSER)(`the page of cryptodl report${BROWSER_NEEDED}`, () => {
  const scratch = scratchFolder();
  const file = join(scratch, 'report.html');
  let browser: Browser;

  beforeAll(async () => {
    browser = await startBrowser();
    const lake = join(scratch, 'lake');
    const symbols = NAMES.map((name) => `${name}USDT`);
    makeSeries(lake, symbols, daysBefore('2026-11-20', 420));
    const messages = Array.from({ length: 25 }, (_, at) =>
      at === 0 ? HOSTILE : `the archive answered 404, ${at}`,
    );
    const failures = writeFailures(lake, messages);
    for (let day = 30; day > 0; day -= 1)
      writeRecord(lake, runRecord(START - day * DAY_MS, { reasons: { timeout: day % 7 } }));
    const record = runRecord(START, { failed: 25, failures });
    writeRecord(lake, { ...record, summary: { ...record.summary, alerts: ALERTS } });
    await cryptodlOk(['report', '-o', lake, '--html', file, '--now', '2026-11-21T12:00:00Z']);
  }, 60_000);
  afterAll(() => browser.close());

  it.each(LOOKS)(
    '$width × $height, $theme: drawn, readable, quiet, without a request',
    async (look) => {
      const { page, said, requests } = await openFile(browser, file, look);
      const [wide, room] = await page.evaluate<number[]>(
        '[document.documentElement.scrollWidth, innerWidth]',
      );
      expect(wide).toBeLessThanOrEqual(room ?? 0);
      for (const part of ['.plot', '.heat']) {
        const share = await drawnShare(browser, await page.locator(part).first().screenshot());
        expect([part, share]).toEqual([part, expect.any(Number)]);
        expect(share).toBeGreaterThan(part === '.heat' ? 0.2 : 0.02);
      }
      expect(await page.locator('canvas').count()).toBe(8);
      const dark = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
      expect(dark).toBe(look.theme === 'dark' ? 'rgb(18, 22, 29)' : 'rgb(245, 246, 248)');
      for (const summary of await page.locator('summary').all()) await summary.click();
      expect(await seriousFindings(page)).toEqual([]);
      expect(said).toEqual([]);
      expect(requests).toEqual([`file://${file}`]);
      await page.close();
    },
    60_000,
  );

  it('shows the outcomes in the words of the program, and the alerts of the run', async () => {
    const { page } = await openFile(browser, file, WIDE);
    const figures = await page.locator('#run dl > div').allInnerTexts();
    const texts = figures.map((text) => text.replace('\n', ' '));
    expect(texts).toEqual(
      expect.arrayContaining(['ok 6,175', 'skipped 410', 'absent 38', 'failed 25', 'exit code 4']),
    );
    expect(await page.getByRole('list', { name: 'Alerts' }).getByRole('listitem').allTextContents()).toEqual(
      ALERTS.map(({ text, advice }) => `${text}: ${advice}`),
    );
    await page.close();
  }, 60_000);

  it('filters failures, and texts of the archive stay text', async () => {
    const { page } = await openFile(browser, file, WIDE);
    const rows = page.locator('#failures tbody tr');
    expect(await rows.count()).toBe(25);
    await page.getByLabel('Filter').fill('ONERROR');
    expect(await rows.count()).toBe(1);
    expect(await rows.first().locator('.wide').textContent()).toBe(HOSTILE);
    expect(await page.locator('#failures caption').first().textContent()).toContain('1 of 25');
    expect(await page.locator('img, b').count()).toBe(0);
    await page.getByRole('button', { name: 'Dark theme' }).click();
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(18, 22, 29)');
    await page.close();
  }, 60_000);

  it('shows a day of the heat-map under the pointer and under the cursor of the keyboard', async () => {
    const { page } = await openFile(browser, file, WIDE);
    const heat = page.locator('.heat');
    await page.getByLabel('Symbol').fill('btc');
    await heat.hover({ position: { x: 400, y: 30 } });
    expect(await page.locator('.tip').textContent()).toMatch(/^BTCUSDT, 20\d\d-\d\d-\d\d: /);
    // Tab reaches the heat-map from the field above it.
    await page.getByRole('button', { name: 'wider days' }).focus();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.className')).toBe('heat');
    await page.keyboard.press('End');
    expect(await page.locator('output.cell').textContent()).toContain('BTCUSDT, 2026-11-19: ');
    await page.keyboard.press('ArrowLeft');
    expect(await page.locator('output.cell').textContent()).toContain('BTCUSDT, 2026-11-18: ');
    await page.getByLabel('Symbol').fill('');
    await heat.focus();
    await page.keyboard.press('PageDown');
    expect(await page.locator('output.cell').textContent()).not.toContain('BTCUSDT');
    const texts: (string | null)[] = [];
    for (let day = 0; day < 420; day += 1) {
      await page.keyboard.press('ArrowLeft');
      texts.push(await page.locator('output.cell').textContent());
    }
    expect(texts.filter((text) => /\d %.* rows, unexplained$/.test(text ?? '')).length).toBeGreaterThan(0);
    await page.close();
  }, 60_000);

  it('is the picture of the README (CRYPTODL_TEST_PICTURE=1 makes it again)', async () => {
    if (process.env['CRYPTODL_TEST_PICTURE'] !== undefined) {
      const { page } = await openFile(browser, file, { ...WIDE, height: 1200 });
      await page.evaluate(`for (const id of ['network', 'failures', 'history']) document.getElementById(id).hidden = true;
        for (const name of ['.alerts', '#course .chart:nth-child(n+3)', '#coverage .table', 'details'])
          for (const each of document.querySelectorAll(name)) each.hidden = true;
        document.querySelector('header code').textContent = '/srv/lake';`);
      await settled(page);
      writeFileSync(PICTURE, await page.screenshot());
      await page.close();
    }
    const picture = readFileSync(PICTURE);
    expect(picture.length).toBeLessThan(150_000);
    expect(await drawnShare(browser, picture)).toBeGreaterThan(0.2);
  }, 60_000);

  it('of 2,000 series and 3,000 days opens and scrolls', async () => {
    const lake = join(scratch, 'large');
    makeMonths(lake, 2000, 100);
    const large = join(scratch, 'large.html');
    const { stdout } = await cryptodlOk(argv`report -o ${lake} --html ${large} --now 2026-11-21T12:00:00Z`);
    expect(stdout).toContain('2,000 series');
    const before = performance.now();
    const { page } = await openFile(browser, large, WIDE);
    const opened = performance.now();
    const heat = page.locator('.heat');
    expect(await drawnShare(browser, await heat.screenshot())).toBeGreaterThan(0.2);
    const frames = await page.evaluate<number>(`(async () => {
      const heat = document.querySelector('.heat');
      const started = performance.now();
      for (let step = 0; step < 60; step += 1) {
        heat.scrollTop = step * 500;
        heat.scrollLeft = step * 90;
        await new Promise((done) => requestAnimationFrame(done));
      }
      return (performance.now() - started) / 60;
    })()`);
    const size = `${(readFileSync(large).length / 1e6).toFixed(1)} MB`;
    process.stdout.write(
      `2,000 × 3,000: ${size}, open after ${Math.round(opened - before)} ms, ${frames.toFixed(1)} ms per frame\n`,
    );
    // Every cell is found, also the last one.
    await heat.focus();
    for (let page_ = 0; page_ < 200; page_ += 1) await page.keyboard.press('PageDown');
    await page.keyboard.press('End');
    expect(await page.locator('output.cell').textContent()).toContain('M1999USDT, 2026-04-30: complete');
    await page.close();
  }, 180_000);
});
