import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { spanText, traceParentOf } from '../../src/monitor/otlp.js';
import type { Span } from '../../src/monitor/otlp.js';
import { SpanTree } from '../../src/monitor/span-tree.js';
import { Trace } from '../../src/monitor/trace.js';
import { TraceFile } from '../../src/monitor/trace-file.js';
import { scratchFolder } from '../helpers/folders.js';
import { rootOf, spansOf } from '../helpers/trace.js';
import type { TracedSpan } from '../helpers/trace.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const span = (id: string, from: number) => ({ id, name: id, kind: 1 as const, from, attributes: {} });

describe('a span', () => {
  it('lasts until its last part ends, and is passed on after it', () => {
    const spans: Span[] = [];
    const tree = new SpanTree((each) => spans.push(each), 'outer');
    const run = tree.begin(span('run', 0));
    const download = tree.begin(span('download', 1), 'run');
    const sidecar = tree.begin(span('sidecar', 2), 'download');
    tree.end(download, { to: 3, error: 'reset' });
    tree.end(run, { to: 4 });
    expect([spans, tree.has('download')]).toEqual([[], true]);
    tree.end(sidecar, { to: 9 });
    expect(spans.map(({ id, parentId, from, to, error }) => [id, parentId, from, to, error])).toEqual([
      ['sidecar', 'download', 2, 9, undefined],
      ['download', 'run', 1, 9, 'reset'],
      ['run', 'outer', 0, 9, undefined],
    ]);
    expect(tree.has('run')).toBe(false);
  });

  it('that has not ended is ended with the tree, the inner ones first, and only once', () => {
    const spans: Span[] = [];
    const tree = new SpanTree((each) => spans.push(each), undefined);
    tree.begin(span('run', 0));
    const wait = tree.begin(span('wait', 1), 'run');
    tree.endAll({ to: 5, attributes: { 'cryptodl.unfinished': true } });
    tree.end(wait, { to: 6 });
    expect(spans.map(({ id, to }) => [id, to])).toEqual([
      ['wait', 5],
      ['run', 5],
    ]);
  });

  it('has exact nanoseconds, and no password', () => {
    const text = spanText('0'.repeat(32), {
      ...span('a', 1_795_000_000_000.25),
      to: 1_795_000_000_001.5,
      error: 'proxy http://me:hunter2@proxy:1 refused',
    });
    expect(text).toContain('"startTimeUnixNano":"1795000000000250000"');
    expect(text).toContain('"endTimeUnixNano":"1795000000001500000"');
    expect(text).toContain('http://me:***@proxy:1');
  });
});

const [trace, parent] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];

describe('a trace', () => {
  const scratch = scratchFolder();
  let files = 0;

  /** A trace of a command that began five seconds ago. `times`: seconds of a span since the begin of the command. */
  function tracing(options: Pick<ConstructorParameters<typeof Trace>[0], 'parent' | 'around'> = {}) {
    files += 1;
    const path = join(scratch, `${files}.jsonl`);
    const clock = new VirtualClock();
    const file = new TraceFile(path, () => clock.monotonic());
    const beganAt = clock.now() - 5000;
    const traced = new Trace({ file, clock, startedAt: clock.monotonic() - 5000, ...options });
    const secondsOf = (at: bigint): number => (Number(at / 1_000_000n) - beganAt) / 1000;
    const times = ({ name, from, to }: TracedSpan) => [name, secondsOf(from), secondsOf(to)];
    const spans = (): TracedSpan[] => {
      file.close();
      return spansOf(path);
    };
    return { path, clock, traced, times, spans };
  }

  it('of one run begins with the command, and its phases follow each other', async () => {
    const { clock, traced, times, spans } = tracing();
    const run = traced.follow('vision');
    for (const phase of ['selecting', 'working', 'ending'] as const) {
      run.phase(phase);
      await clock.advance(1000);
    }
    run.ended(0);
    const all = spans();
    expect(rootOf(all).name).toBe('cryptodl vision');
    expect(all.map(times)).toEqual([
      ['selecting', 5, 6],
      ['working', 6, 7],
      ['ending', 7, 8],
      ['cryptodl vision', 0, 8],
    ]);
  });

  it('of several jobs continues the trace of the environment, and each job begins when it is followed', async () => {
    const options = { around: 'cryptodl run', parent: { traceId: trace, spanId: parent } };
    const { clock, traced, times, spans } = tracing(options);
    await clock.advance(1000);
    const run = traced.follow('bars');
    await clock.advance(1000);
    run.ended(0);
    await clock.advance(1000);
    traced.end();
    const all = spans();
    expect(rootOf(all, parent)).toMatchObject({ traceId: trace, name: 'cryptodl run' });
    expect(all.map(times)).toEqual([
      ['cryptodl bars', 6, 7],
      ['cryptodl run', 0, 8],
    ]);
  });

  it('has the bucket and the waits of an attempt, and no secrets of its query', () => {
    const { clock, traced, spans } = tracing();
    const run = traced.follow('metrics');
    const begunAt = clock.monotonic();
    run.observer.attempt({
      request: { url: 'https://api.test/data?symbol=A&apiKey=hunter2&signature=hunter3', bucket: 'fapi' },
      attemptId: 'a/3',
      begunAt,
      sentAt: begunAt + 40,
      endedAt: begunAt + 100,
      firstByteMs: 25.4,
      status: 200,
      error: undefined,
    });
    run.ended(0);
    expect(spans()[0]?.attributes).toEqual({
      'http.request.method': 'GET',
      'url.full': 'https://api.test/data?symbol=A&apiKey=REDACTED&signature=REDACTED',
      'server.address': 'api.test',
      'server.port': 443,
      'http.response.status_code': 200,
      'http.request.resend_count': 2,
      'cryptodl.bucket': 'fapi',
      'cryptodl.socket_wait_ms': 40,
      'cryptodl.first_byte_ms': 25,
    });
  });

  it('is in the file one second after a span, or after two hundred spans, so that a killed run leaves one', async () => {
    const { path, clock, traced, spans } = tracing();
    const run = traced.follow('vision');
    const work = (): void => {
      run.work({ id: String(files++).padStart(16, '0'), stage: 'request', name: 'http://a.test/' })();
    };
    const lines = (): number => readFileSync(path, 'utf8').split('\n').length - 1;
    work();
    await clock.advance(999);
    work();
    expect(lines()).toBe(0);
    await clock.advance(1);
    work();
    expect(lines()).toBe(1);
    for (let count = 0; count < 200; count += 1) work();
    expect(lines()).toBe(2);
    expect(spans()).toHaveLength(203);
  });
});

describe('TRACEPARENT', () => {
  it.each([
    ['00-{}-01', true],
    ['cc-{}-01-later', true],
    ['00-{}-01-later', false],
    ['ff-{}-01', false],
    ['00-{}', false],
    ['', false],
  ])('%s', (form, isValid) => {
    const text = form.replace('{}', `${trace}-${parent}`);
    expect(traceParentOf(text)).toEqual(isValid ? { traceId: trace, spanId: parent } : undefined);
  });

  it('of zeros is not valid', () => {
    expect(traceParentOf(`00-${'0'.repeat(32)}-${parent}-01`)).toBeUndefined();
    expect(traceParentOf(`00-${trace}-${'0'.repeat(16)}-01`)).toBeUndefined();
    expect(traceParentOf(undefined)).toBeUndefined();
  });
});
