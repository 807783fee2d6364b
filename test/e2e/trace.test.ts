/** `--trace`: the spans of a run. */
import type { ServerResponse } from 'node:http';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TOOL_VERSION } from '../../src/model/version.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { isListing, isZip, useScene } from '../helpers/scene.js';
import { chainOf, rootOf, spansOf } from '../helpers/trace.js';
import type { TracedSpan } from '../helpers/trace.js';

const scene = useScene({
  archive: [{ symbols: ['BTCUSDT', 'ETHUSDT'], from: '2026-11-13', to: '2026-11-20' }],
  flags: '--interval 1h --symbols BTCUSDT,ETHUSDT --days 3',
  isTimeVirtual: true,
});

const newFile = (): string => join(scene.newFolder(), 'trace.jsonl');

/** Method, path and status of each attempt, sorted. */
function attemptsOf(spans: readonly TracedSpan[]): string[] {
  return spans
    .filter(({ kind }) => kind === 3)
    .map(({ attributes: own }) => {
      const { pathname, search } = new URL(String(own['url.full']));
      const path = decodeURIComponent(pathname + search);
      return `${own['http.request.method']} ${path} ${own['http.response.status_code'] ?? 'none'}`;
    })
    .sort();
}

/** Notes each answer of the archive. `fault`: as that of the archive. */
function noted(fault: (path: string, response: ServerResponse) => boolean = () => false): string[] {
  const answers: string[] = [];
  scene.archive.fault = (path, request, response) => {
    response.on('close', () => {
      answers.push(`${request.method} ${path} ${response.headersSent ? response.statusCode : 'none'}`);
    });
    return fault(path, response);
  };
  return answers;
}

const named = (spans: readonly TracedSpan[], name: string): TracedSpan[] =>
  spans.filter((span) => span.name === name);

describe('--trace', () => {
  it('has the run, its phases, partitions, objects, requests and attempts', async () => {
    const file = newFile();
    const answers = noted();
    const { code } = await scene.vision(['--trace', file]);
    expect(code).toBe(0);
    const spans = spansOf(file);
    const root = rootOf(spans);
    expect(spans.filter(({ attributes }) => attributes['cryptodl.unfinished'] !== undefined)).toEqual([]);
    expect(root).toMatchObject({ name: 'cryptodl vision', attributes: { 'cryptodl.exit_code': 0 } });
    expect(attemptsOf(spans)).toEqual([...answers].sort());
    const zip = spans.find(
      ({ kind, attributes }) => kind === 3 && String(attributes['url.full']).endsWith('.zip'),
    );
    if (zip === undefined) throw new Error('no attempt');
    expect(chainOf(zip, spans)).toEqual([
      'GET',
      'request',
      'download',
      'partition',
      'working',
      'cryptodl vision',
    ]);
    const sidecars = spans.filter(
      ({ kind, attributes }) => kind === 3 && String(attributes['url.full']).endsWith('.CHECKSUM'),
    );
    expect(sidecars).toHaveLength(6);
    for (const span of sidecars) expect(chainOf(span, spans)).toEqual(chainOf(zip, spans));
    expect(zip.attributes).toMatchObject({
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(scene.archive.url).port),
      'http.response.status_code': 200,
    });
    for (const [name, chain, count] of [
      ['check', ['check', 'download', 'partition', 'working', 'cryptodl vision'], 6],
      ['convert', ['convert', 'write', 'partition', 'working', 'cryptodl vision'], 2],
      ['commit', ['commit', 'write', 'partition', 'working', 'cryptodl vision'], 2],
    ] as const) {
      const found = named(spans, name);
      expect(found.map((span) => chainOf(span, spans))).toContainEqual(chain);
      expect(found.length).toBeGreaterThanOrEqual(count);
    }
    expect(named(spans, 'partition').map(({ attributes }) => attributes)).toContainEqual({
      'cryptodl.market': 'um',
      'cryptodl.dataset': 'klines',
      'cryptodl.interval': '1h',
      'cryptodl.symbol': 'BTCUSDT',
      'cryptodl.period': '2026-11',
    });
    const listing = spans.filter(
      ({ kind, attributes }) => kind === 3 && isListing(String(attributes['url.full'])),
    );
    for (const span of listing)
      expect(chainOf(span, spans)).toEqual([
        'GET',
        'request',
        expect.stringMatching(/^(selecting|planning)$/),
        'cryptodl vision',
      ]);
    expect(readFileSync(file, 'utf8')).toContain(
      `{"key":"service.version","value":{"stringValue":"${TOOL_VERSION}"}}`,
    );
  });

  it('has every attempt at a host that refuses, resets and cuts, and the waits between them', async () => {
    const file = newFile();
    const seen = new Map<string, number>();
    const answers = noted((path, response) => {
      const times = (seen.get(path) ?? 0) + 1;
      seen.set(path, times);
      if (times > 1 || !isZip(path)) return false;
      if (path.endsWith('18.zip')) response.writeHead(429, { 'retry-after': '0' }).end();
      else if (path.endsWith('19.zip')) response.destroy();
      else response.writeHead(200, { 'content-length': '5000' }).write('PK', () => response.destroy());
      return true;
    });
    const { code } = await scene.vision(['--trace', file]);
    expect(code).toBe(0);
    const spans = spansOf(file);
    rootOf(spans);
    expect(attemptsOf(spans)).toEqual([...answers].sort());
    const failed = spans.filter(({ kind, error }) => kind === 3 && error !== undefined);
    expect(failed).toHaveLength(6);
    expect(failed.map(({ attributes }) => attributes['error.type'])).toContain('rate-limited');
    const resent = spans.filter(({ attributes }) => attributes['http.request.resend_count'] === 1);
    expect(resent).toHaveLength(6);
    // Each failed attempt is followed by a wait of its request.
    const waits = named(spans, 'wait back-off');
    expect(waits.length).toBeGreaterThanOrEqual(4);
    for (const wait of waits) {
      expect(chainOf(wait, spans).slice(0, 3)).toEqual(['wait back-off', 'request', 'download']);
      expect(wait.attributes).toEqual({ 'cryptodl.wait_reason': 'back-off' });
    }
  });

  it('has the objects that failed, with their codes', async () => {
    const file = newFile();
    scene.refuse((path) => path.endsWith('20.zip'), 500);
    const { code } = await scene.vision(['--trace', file, '--retries', '1']);
    expect(code).toBe(3);
    const spans = spansOf(file);
    expect(rootOf(spans)).toMatchObject({
      error: 'exit code 3',
      attributes: { 'cryptodl.exit_code': 3 },
    });
    const failed = named(spans, 'download').filter(({ error }) => error !== undefined);
    expect(new Set(failed.map(({ attributes }) => attributes['error.type']))).toEqual(
      new Set(['http-server-error']),
    );
  });

  it('is complete after a signal', async () => {
    const file = newFile();
    const run = scene.vision(['--trace', file], {
      clock: undefined,
      onSpawn: (child) => {
        let kill = (): unknown => child.kill('SIGTERM');
        scene.answer(isZip, () => {
          kill();
          // A second signal would end the process at once.
          kill = () => undefined;
        });
      },
    });
    expect((await run).code).toBe(143);
    const spans = spansOf(file);
    expect(rootOf(spans).attributes).toMatchObject({ 'cryptodl.exit_code': 143 });
    expect(named(spans, 'download').some(({ error }) => error?.startsWith('interrupted') === true)).toBe(
      true,
    );
    expect(named(spans, 'GET').length).toBeGreaterThan(0);
  });

  it('of a run that could not begin has its error', async () => {
    const file = newFile();
    const { code } = await scene.vision(['--trace', file, '--symbols', 'NONEUSDT']);
    expect(code).toBe(2);
    const spans = spansOf(file);
    expect(rootOf(spans)).toMatchObject({
      error: 'usage',
      attributes: { 'cryptodl.exit_code': 2, 'error.type': 'usage' },
    });
    expect(attemptsOf(spans)).toContainEqual(expect.stringContaining('prefix='));
  });

  it('continues the trace of TRACEPARENT', async () => {
    const [traceId, spanId] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];
    const file = newFile();
    await scene.vision(['--trace', file], { env: { TRACEPARENT: `00-${traceId}-${spanId}-01` } });
    expect(rootOf(spansOf(file), spanId)).toMatchObject({ traceId, name: 'cryptodl vision' });
  });

  it('does not replace a file of another kind', async () => {
    const file = newFile();
    writeFileSync(file, '{"a":1}\n');
    const { code, stderr } = await scene.vision(['--trace', file]);
    expect([code, stderr]).toEqual([
      2,
      `cryptodl: --trace ${file} is not a trace, and is not replaced\n  choose another --trace, or remove the file\n`,
    ]);
    expect(readFileSync(file, 'utf8')).toBe('{"a":1}\n');
  });

  it('replaces the file of an earlier run, and is not written for a plan', async () => {
    const file = newFile();
    const earlier = '{"resourceSpans":[{"resource":{"attributes":[]}}]}\n';
    writeFileSync(file, earlier);
    await scene.vision(['--trace', file, '--dry-run']);
    expect(readFileSync(file, 'utf8')).toBe(earlier);
    await scene.vision(['--trace', file]);
    rootOf(spansOf(file));
  });

  it('of several jobs is one tree', async () => {
    const folder = scene.newFolder();
    const [file, jobs] = [join(folder, 'trace.jsonl'), join(folder, 'jobs.json')];
    const jobOf = (symbols: string): object => ({ verb: 'vision', symbols, out: join(folder, symbols) });
    const defaults = {
      'archive-url': scene.archive.url,
      interval: '1h',
      days: 2,
      now: scene.now,
      'state-dir': join(folder, 'state'),
    };
    writeFileSync(jobs, JSON.stringify({ jobs: { a: jobOf('BTCUSDT'), b: jobOf('ETHUSDT') }, defaults }));
    const flags = ['--jobs', '2', '--trace', file, '--out', join(folder, 'reports')];
    expect((await cryptodl(['run', jobs, ...FAST.slice(6), ...flags])).code).toBe(0);
    const spans = spansOf(file);
    expect(rootOf(spans).name).toBe('cryptodl run');
    expect(named(spans, 'cryptodl a').concat(named(spans, 'cryptodl b'))).toHaveLength(2);
    expect(named(spans, 'download')).toHaveLength(4);
  });

  it('that cannot be written is one warning', async () => {
    const { code, stderr } = await scene.vision(['--trace', '/dev/full', '--quiet']);
    expect(code).toBe(0);
    expect(stderr.match(/warning: --trace.*$/gm)).toEqual([
      'warning: --trace /dev/full cannot be written (ENOSPC): the trace is incomplete',
    ]);
  });

  it('has only whole lines on a full disk', async () => {
    const file = newFile();
    const { code, stderr } = await scene.vision(['--trace', file, '--days', '8'], {
      clock: undefined,
      // Units of 512 bytes. The trace is longer, and every other file of the run is shorter.
      wrap: ['sh', '-c', 'ulimit -f 80 && exec "$@"', 'sh'],
    });
    expect(code).toBe(0);
    expect(stderr).toMatch(/^warning: --trace .* cannot be written .*: the trace is incomplete$/m);
    expect(readFileSync(file, 'utf8')).toMatch(/^(?:\{.*\}\n)*$/);
  });

  it('is refused before the first request if the file cannot be opened', async () => {
    const folder = scene.newFolder();
    mkdirSync(join(folder, 'trace'));
    const { code, stderr } = await scene.vision(['--trace', join(folder, 'trace')]);
    expect([code, scene.archive.requests]).toEqual([2, []]);
    expect(stderr).toBe(
      `cryptodl: --trace ${join(folder, 'trace')} cannot be written (it is a folder)\n  choose another --trace, or leave it out\n`,
    );
    const dash = await scene.vision(['--trace', '-']);
    expect([dash.code, existsSync('-')]).toEqual([2, false]);
    expect(dash.stderr).toContain('--trace: the trace needs a file, not stdout');
  });

  it('does not contain the password of a proxy', async () => {
    const file = newFile();
    const proxy = 'http://me:hunter2@127.0.0.1:1';
    const { code } = await scene.vision(['--trace', file, '--proxy', proxy, '--retries', '0'], {
      url: 'http://archive.test',
    });
    expect(code).not.toBe(0);
    const text = readFileSync(file, 'utf8');
    expect(text).toContain('proxy-unreachable');
    expect(text).not.toMatch(/hunter2/);
  });
});
