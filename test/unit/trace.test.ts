import { describe, expect, it } from 'vitest';
import { spanText, traceParentOf } from '../../src/monitor/otlp.js';
import type { Span } from '../../src/monitor/otlp.js';
import { SpanTree } from '../../src/monitor/span-tree.js';

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

describe('TRACEPARENT', () => {
  const [trace, parent] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7'];

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
