/** Files of `--trace`: their lines, checked against the JSON form of OTLP, and the tree of their spans. */
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';

export interface TracedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly from: bigint;
  readonly to: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The message of a failed span. */
  readonly error: string | undefined;
}

const NANOSECONDS = expect.stringMatching(/^[1-9]\d{18}$/) as string;
const SPAN_KEYS = [
  'attributes',
  'endTimeUnixNano',
  'kind',
  'name',
  'parentSpanId',
  'spanId',
  'startTimeUnixNano',
  'status',
  'traceId',
];

/** All spans of a file. Fails if a line does not have the form of OTLP. */
export function spansOf(file: string): TracedSpan[] {
  const text = readFileSync(file, 'utf8');
  expect(text.endsWith('\n')).toBe(true);
  return text
    .trimEnd()
    .split('\n')
    .flatMap((line) => spansOfLine(JSON.parse(line)));
}

interface Line {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly KeyValue[] };
    readonly scopeSpans: readonly { readonly scope: object; readonly spans: readonly OtlpSpan[] }[];
  }[];
}

interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly status: { readonly code?: number; readonly message?: string };
}

function spansOfLine(line: unknown): TracedSpan[] {
  const { resourceSpans } = line as Line;
  expect(Object.keys(line as object)).toEqual(['resourceSpans']);
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    expect(valuesOf(resource.attributes)).toMatchObject({ 'service.name': 'cryptodl' });
    return scopeSpans.flatMap(({ scope, spans }) => {
      expect(scope).toMatchObject({ name: 'cryptodl' });
      return spans.map(checked);
    });
  });
}

function checked(span: OtlpSpan): TracedSpan {
  expect(SPAN_KEYS).toEqual(expect.arrayContaining(Object.keys(span)));
  expect(span).toMatchObject({
    traceId: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
    spanId: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    name: expect.any(String) as string,
    startTimeUnixNano: NANOSECONDS,
    endTimeUnixNano: NANOSECONDS,
  });
  expect([1, 3]).toContain(span.kind);
  const { code, message } = span.status;
  expect([undefined, 2]).toContain(code);
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    name: span.name,
    kind: span.kind,
    from: BigInt(span.startTimeUnixNano),
    to: BigInt(span.endTimeUnixNano),
    attributes: valuesOf(span.attributes),
    error: code === undefined ? undefined : (message ?? ''),
  };
}

function valuesOf(list: readonly KeyValue[]): TracedSpan['attributes'] {
  const entries = list.map(({ key, value }) => {
    const [kind = '', ...more] = Object.keys(value);
    expect(more).toEqual([]);
    expect(['stringValue', 'intValue', 'boolValue', 'doubleValue']).toContain(kind);
    const content = value[kind] as string | number | boolean;
    if (kind === 'intValue') expect(content).toMatch(/^-?\d+$/);
    return [key, kind === 'intValue' ? Number(content) : content] as const;
  });
  expect(new Set(entries.map(([key]) => key)).size).toBe(entries.length);
  return Object.fromEntries(entries);
}

/**
 * Checks that the spans are one tree, and that each span lies within the time of its parent. Returns the root. `outerId`: the parent
 * of the root, which is not in the file.
 */
export function rootOf(spans: readonly TracedSpan[], outerId?: string): TracedSpan {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  expect(byId.size).toBe(spans.length);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  const roots = spans.filter(({ parentSpanId }) => parentSpanId === outerId);
  expect(roots.map(({ name }) => name)).toHaveLength(1);
  const bad = spans.filter((span) => {
    const parent = byId.get(span.parentSpanId ?? '');
    const isWithin = parent === undefined || (parent.from <= span.from && span.to <= parent.to);
    return span.from > span.to || !isWithin || (parent === undefined && span.parentSpanId !== outerId);
  });
  expect(bad.map((span) => chainOf(span, spans))).toEqual([]);
  const [root] = roots;
  if (root === undefined) throw new Error('no root');
  return root;
}

/** The names of a span and of those around it, from the inside to the outside. */
export function chainOf(span: TracedSpan, spans: readonly TracedSpan[]): string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [span.name, ...(parent === undefined ? [] : chainOf(parent, spans))];
}
