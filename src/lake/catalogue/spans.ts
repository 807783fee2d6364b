/** Arithmetic of spans of time. */

/** Spans as a flat list `[from, to, from, to, …]`, because a lake may have millions: half-open, ascending and disjoint, in seconds or days. */
export type Spans = ArrayLike<number>;

/** Days `[from, to)` of the exchange. In a plan, `from` is -Infinity for a range from the start of the series on. */
export interface DayRange {
  readonly from: number;
  readonly to: number;
}

/** Ascending and disjoint spans of the same days. */
export const spansOf = (ranges: readonly DayRange[]): number[] =>
  union(ranges.flatMap(({ from, to }) => (from < to ? [from, to] : [])));

export function rangesOf(spans: Spans): DayRange[] {
  const ranges: DayRange[] = [];
  eachSpan(spans, (from, to) => ranges.push({ from, to }));
  return ranges;
}

export function intersect(a: Spans, b: Spans): number[] {
  const both: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const from = Math.max(at(a, i), at(b, j));
    const to = Math.min(at(a, i + 1), at(b, j + 1));
    if (from < to) both.push(from, to);
    if (at(a, i + 1) < at(b, j + 1)) i += 2;
    else j += 2;
  }
  return both;
}

export function subtract(a: Spans, b: Spans): number[] {
  const left: number[] = [];
  let j = 0;
  for (let i = 0; i < a.length; i += 2) {
    let from = at(a, i);
    const to = at(a, i + 1);
    while (j < b.length && at(b, j + 1) <= from) j += 2;
    for (let k = j; k < b.length && at(b, k) < to; k += 2) {
      if (at(b, k) > from) left.push(from, at(b, k));
      from = Math.max(from, at(b, k + 1));
    }
    if (from < to) left.push(from, to);
  }
  return left;
}

/** Appends a span that begins no earlier than the last one. Joins the two when they touch or overlap. */
export function append(spans: number[], from: number, to: number): void {
  const last = spans.length - 1;
  if (last > 0 && from <= at(spans, last)) spans[last] = Math.max(at(spans, last), to);
  else spans.push(from, to);
}

/** Sorts and joins spans that may overlap. */
export function union(spans: Spans): number[] {
  const pairs = Array.from({ length: spans.length / 2 }, (_, i) => [at(spans, 2 * i), at(spans, 2 * i + 1)]);
  const all: number[] = [];
  for (const [from = 0, to = 0] of pairs.sort(([a = 0], [b = 0]) => a - b)) append(all, from, to);
  return all;
}

/** Length of the intersection of `[from, to)` and `[start, end)`. */
export const overlap = (from: number, to: number, start: number, end: number): number =>
  Math.max(0, Math.min(to, end) - Math.max(from, start));

/** The number at this index; 0 beyond the end. */
export const at = (spans: Spans, index: number): number => spans[index] ?? 0;

/** The number of rows in spans of seconds, with one row per `seconds`. Each span has at least one row. */
export function rowsIn(spans: Spans, seconds: number): number {
  let rows = 0;
  for (let i = 0; i < spans.length; i += 2)
    rows += Math.max(1, Math.round((at(spans, i + 1) - at(spans, i)) / seconds));
  return rows;
}

/** Widens spans to whole rows of `rowSeconds`. */
export function inWholeRows(spans: Spans, rowSeconds: number): number[] {
  const widened: number[] = [];
  for (let i = 0; i < spans.length; i += 2) {
    const from = Math.floor(at(spans, i) / rowSeconds) * rowSeconds;
    append(widened, from, Math.ceil(at(spans, i + 1) / rowSeconds) * rowSeconds);
  }
  return widened;
}

export function eachSpan(spans: Spans, act: (from: number, to: number) => void): void {
  for (let i = 0; i < spans.length; i += 2) act(at(spans, i), at(spans, i + 1));
}

export function totalOf(spans: Spans): number {
  let total = 0;
  eachSpan(spans, (from, to) => {
    total += to - from;
  });
  return total;
}
