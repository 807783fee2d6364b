/** A real Chromium, for tests of pages. */
import { spawnSync } from 'node:child_process';
import axe from 'axe-core';
import type { AxeResults } from 'axe-core';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';

const PROGRAM = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

export const HAS_BROWSER = PROGRAM !== undefined;
/** For the name of a suite that is skipped without it. */
export const BROWSER_NEEDED = HAS_BROWSER ? '' : ' (needs Chromium: apt-get install chromium)';

/** The tests run as root in a container, where the sandbox of Chromium cannot start. */
export function startBrowser(): Promise<Browser> {
  const [path = ''] = spawnSync('sh', ['-c', `command -v ${PROGRAM ?? ''}`], {
    encoding: 'utf8',
  }).stdout.split('\n');
  return chromium.launch({ executablePath: path, args: ['--no-sandbox'] });
}

export interface Watched {
  readonly page: Page;
  /** Errors and warnings of the console, and uncaught errors. */
  readonly said: string[];
  readonly requests: string[];
}

export interface Look {
  readonly width: number;
  readonly height: number;
  readonly theme: 'light' | 'dark';
}

/** Opens a file and waits until it is drawn. */
export async function openFile(
  browser: Browser,
  file: string,
  { width, height, theme }: Look,
): Promise<Watched> {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: theme });
  const said: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => {
    if (message.type() !== 'log') said.push(message.text());
  });
  page.on('pageerror', (error) => said.push(error.message));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(`file://${file}`);
  await page.locator('main').waitFor();
  await settled(page);
  return { page, said, requests };
}

/** Serious and critical findings of axe-core: the rule, and the elements. */
export async function seriousFindings(page: Page): Promise<[rule: string, elements: string[]][]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}

/** Resolves after the next two frames. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
}

/** The share of the pixels of a picture that differ from its most frequent colour. */
export async function drawnShare(browser: Browser, picture: Buffer): Promise<number> {
  const page = await browser.newPage();
  try {
    return await page.evaluate<number>(`(async () => {
      const bytes = Uint8Array.from(atob('${picture.toString('base64')}'), (one) => one.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext('2d');
      context.drawImage(image, 0, 0);
      const pixels = new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer);
      const counts = new Map();
      for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
      return 1 - Math.max(...counts.values()) / pixels.length;
    })()`);
  } finally {
    await page.close();
  }
}
