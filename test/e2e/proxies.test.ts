/** Several proxies: `--proxy` more than once, separated by commas, or lines of a file. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { cryptodl } from '../helpers/cli.js';
import { filesBelow } from '../helpers/lake.js';
import { samplesOf } from '../helpers/prometheus.js';
import { startProxy } from '../helpers/proxy.js';
import type { TestProxy } from '../helpers/proxy.js';
import { useScene } from '../helpers/scene.js';

const symbols = ['BTCUSDT', 'ETHUSDT', 'SOLUSDT', 'XRPUSDT'];
const scene = useScene({
  archive: [{ from: '2026-11-11', to: '2026-11-20', symbols }],
  venue: {
    symbols: [
      { symbol: 'BTCUSDT', host: 'fapi' },
      { symbol: 'ETHUSDT', host: 'fapi' },
    ],
  },
  flags: '--json',
});
const OBJECTS = 40;
const BARS = '--interval 1h --symbols all --days 10';
const CREDENTIALS = ['anna:pa55-w0rd', 'ben:s3cr3t-too', 'cleo:th1rd-0ne'];
let open: TestProxy[] = [];

afterEach(() => {
  for (const proxy of open) proxy.stop();
  open = [];
});

async function proxies(number: number): Promise<TestProxy[]> {
  open = await Promise.all(CREDENTIALS.slice(0, number).map((each) => startProxy(each)));
  return open;
}

function flagsOf(some: readonly TestProxy[]): string[] {
  return some.flatMap(({ address }) => ['--proxy', address]);
}

function wordsOf(flags: string, some: readonly TestProxy[]): string[] {
  return [...flags.split(' '), ...flagsOf(some)];
}

interface Figures {
  readonly proxy: string;
  readonly requests: number;
  readonly failures: number;
  readonly refusals: number;
  readonly isDead: boolean;
  readonly pausedMs: number;
}

function figuresOf(summary: Readonly<Record<string, unknown>>): Figures[] {
  return (summary['network'] as { proxies: Figures[] }).proxies;
}

function expectNoSecrets(texts: readonly string[]): void {
  const found = CREDENTIALS.flatMap((each) => each.split(':')).filter((word) =>
    texts.some((text) => text.includes(word)),
  );
  expect(found).toEqual([]);
}

describe('several proxies', () => {
  it('share the requests, and no file and no output has their credentials', async () => {
    const some = await proxies(3);
    const state = scene.newFolder();
    const log = join(scene.newFolder(), 'log');
    const run = await scene.vision(
      wordsOf(`${BARS} --state-dir ${state} --log-file ${log} --log-level debug`, some),
    );
    expect([run.code, run.summary['outcomes']]).toEqual([0, expect.objectContaining({ ok: OBJECTS })]);
    const figures = figuresOf(run.summary);
    expect(figures.map(({ proxy }) => proxy)).toEqual(some.map(({ label }) => label));
    expect(figures.map(({ requests }) => requests)).toEqual(some.map(({ asked }) => asked.length));
    const sum = figures.reduce((total, { requests }) => total + requests, 0);
    expect(sum).toBe(run.summary['requests']);
    for (const { requests } of figures) expect(requests).toBeGreaterThan(sum / 6);
    const files = [run.lake, state, join(log, '..')].flatMap((folder) =>
      filesBelow(folder).map((file) => readFileSync(join(folder, file), 'latin1')),
    );
    expectNoSecrets([run.stdout, run.stderr, ...files]);
    const shown = await scene.vision(wordsOf(BARS, some), { sceneFlags: '' });
    expectNoSecrets([shown.stdout, shown.stderr]);
  });

  it('one that ends in the middle of the run is taken out, and the others do its work', async () => {
    const some = await proxies(3);
    const [first] = some;
    if (first !== undefined)
      first.fault = () => {
        if (first.asked.length < 8) return false;
        first.stop();
        return true;
      };
    // The breaker must stay closed: a cut connection may be a fault of the host, and only a refused one is a fault of the proxy. With few
    // objects at a time, there are requests left when the proxy has ended.
    const page = join(scene.newFolder(), 'page.prom');
    const flags = `${BARS} --breaker-failures 1000 --concurrency 3 --prometheus-textfile ${page}`;
    const run = await scene.vision(wordsOf(flags, some));
    expect([run.code, run.summary['outcomes']]).toEqual([
      0,
      expect.objectContaining({ ok: OBJECTS, failed: 0 }),
    ]);
    expect(figuresOf(run.summary)).toMatchObject([
      { isDead: true },
      { isDead: false, failures: 0 },
      { isDead: false },
    ]);
    expect(run.stderr).toContain(
      `the proxy ${first?.label ?? ''} is taken out, and gets a request again in 1s: `,
    );
    const metrics = samplesOf(readFileSync(page, 'utf8')).filter(({ name }) => name.includes('_proxy_'));
    const metricsOf = (name: string): unknown[] =>
      metrics
        .filter((sample) => sample.name === `cryptodl_proxy_${name}`)
        .map(({ labels, value }) => [labels['proxy'], value]);
    expect(metricsOf('up')).toEqual(some.map(({ label }) => [label, label === first?.label ? 0 : 1]));
    expect(metricsOf('requests_total')).toEqual(
      figuresOf(run.summary).map(({ proxy, requests }) => [proxy, requests]),
    );
    expect(run.events.filter(({ event }) => event === 'proxy')[0]).toMatchObject({
      proxy: first?.label,
      state: 'dead',
    });
    expectNoSecrets([run.stdout, run.stderr]);
  });

  it('that all do not work end the run with one line that names each of them', async () => {
    const some = await proxies(2);
    for (const proxy of some) proxy.stop();
    const run = await scene.vision(wordsOf(BARS, some));
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(
      /none of the 2 proxies works: (127\.0\.0\.1:\d+) cannot be reached: connect ECONNREFUSED \1, (127\.0\.0\.1:\d+) cannot be reached: connect ECONNREFUSED \2\n/,
    );
    expectNoSecrets([run.stdout, run.stderr]);
  });

  it('one whose address is banned gets no request, and the others go on', async () => {
    const some = await proxies(2);
    const [banned, other] = some;
    const isRest = (url: string): boolean => /\/(fapi|futures)\//.test(url);
    if (banned !== undefined)
      banned.fault = (url, _request, response) => {
        if (!isRest(url)) return false;
        response
          .writeHead(418, { 'retry-after': '3600', 'content-type': 'application/json' })
          .end('{"code":-1003,"msg":"Way too much request weight used; IP banned"}');
        return true;
      };
    const state = scene.newFolder();
    const flags = `--dataset openInterestHist --symbols BTCUSDT,ETHUSDT --days 3 --state-dir ${state}`;
    const run = await scene.metrics(wordsOf(flags, some));
    expect([run.code, run.summary['outcomes']]).toEqual([0, expect.objectContaining({ failed: 0 })]);
    expect(figuresOf(run.summary).map(({ pausedMs }) => pausedMs > 3_000_000)).toEqual([true, false]);
    const places = filesBelow(join(state, 'bans')).map(decodeURIComponent);
    expect(places.length).toBeGreaterThan(0);
    expect(places.every((place) => place.includes(`@${banned?.label ?? ''} `))).toBe(true);
    expect(other?.asked.length).toBeGreaterThan(0);
    const before = banned?.asked.length ?? 0;
    // The ban is known to the next run, too.
    const again = await scene.metrics(wordsOf(`${flags} --force`, some));
    expect(again.code).toBe(0);
    expect(banned?.asked.slice(before).filter(isRest)).toEqual([]);
  });

  it('are lines of a file', async () => {
    const some = await proxies(2);
    const file = join(scene.newFolder(), 'proxies.txt');
    writeFileSync(file, `# ours\n${some.map(({ address }) => `  ${address}  # rented\n`).join('\n')}`);
    const run = await scene.vision([...BARS.split(' '), '--proxy', `@${file}`]);
    expect([run.code, figuresOf(run.summary).map(({ proxy }) => proxy)]).toEqual([
      0,
      some.map(({ label }) => label),
    ]);
  });

  it.each([
    ['http://anna:pa55-w0rd@a.test:1\nanna:pa55-w0rd@b.test\n', 'FILE is not a list of proxies'],
    ['# none\n', 'FILE is not a list of proxies'],
    [undefined, 'cannot read FILE (no such file or folder)'],
  ])('are refused if the file has %j', async (content, says) => {
    const file = join(scene.newFolder(), 'proxies.txt');
    if (content !== undefined) writeFileSync(file, content);
    const run = await scene.vision([...BARS.split(' '), '--proxy', `@${file}`]);
    expect([run.code, run.stderr]).toEqual([
      2,
      expect.stringContaining(`cryptodl: --proxy: ${says.replace('FILE', file)}\n`),
    ]);
    expectNoSecrets([run.stdout, run.stderr]);
  });

  it.each([
    [
      ['--proxy', 'none', '--proxy', 'http://anna:pa55-w0rd@a.test:1'],
      '--proxy: none stands beside the address of a proxy',
    ],
    [
      '--proxy http://anna:pa55-w0rd@a.test:1,http://b.test:1 --egress-group office --redis redis://127.0.0.1:1'.split(
        ' ',
      ),
      '--egress-group is for one public address, and --proxy names several proxies',
    ],
  ])('are refused with %j', async (flags, says) => {
    const run = await scene.vision([...BARS.split(' '), ...flags]);
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(`cryptodl: ${says}\n`)]);
    expect(run.stdout + run.stderr).not.toContain('pa55-w0rd');
  });

  it('are checked by doctor one by one', async () => {
    const some = await proxies(2);
    some[1]?.stop();
    const hosts = ['archive', 'listing', 'fapi', 'dapi', 'spot'].flatMap((name) => [
      `--${name}-url`,
      scene.archive.url,
    ]);
    const out = ['--out', scene.newFolder()];
    const { stdout, stderr } = await cryptodl(['doctor', ...hosts, ...flagsOf(some), ...out]);
    const lines = stdout.split('\n').filter((line) => / proxy +127\.0\.0\.1:\d+: /.test(line));
    expect(lines.map((line) => line.slice(0, 4))).toEqual(['ok  ', 'warn']);
    expect(lines[1]).toContain('ECONNREFUSED');
    expectNoSecrets([stdout, stderr]);
  });
});
