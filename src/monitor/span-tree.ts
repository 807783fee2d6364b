/** The spans that have begun and not ended. A span lasts at least as long as its parts, and is passed on when all of them have ended. */
import type { Attributes, Span, SpanKind } from './otlp.js';

export interface SpanStart {
  readonly id: string;
  readonly name: string;
  readonly kind: SpanKind;
  /** As in `Span`. */
  readonly from: number;
  readonly attributes: Attributes;
}

interface SpanEnd {
  readonly to: number;
  readonly error?: string | undefined;
  readonly attributes?: Attributes;
}

export interface OpenSpan extends SpanStart {
  /** Undefined for the root. */
  readonly parent: OpenSpan | undefined;
  parts: number;
  /** The latest end of its parts. */
  latest: number;
  end: SpanEnd | undefined;
}

/** Holds only spans that are open or have open parts. */
export class SpanTree {
  readonly #emit: (span: Span) => void;
  readonly #open = new Map<string, OpenSpan>();
  readonly #outerId: string | undefined;

  /** `outerId`: the parent of spans without a parent in the tree. */
  constructor(emit: (span: Span) => void, outerId: string | undefined) {
    this.#emit = emit;
    this.#outerId = outerId;
  }

  has(id: string | undefined): boolean {
    return id !== undefined && this.#open.has(id);
  }

  begin({ id, name, kind, from, attributes }: SpanStart, parentId?: string): OpenSpan {
    const parent = parentId === undefined ? undefined : this.#open.get(parentId);
    if (parent !== undefined) parent.parts += 1;
    // Every span has the same fields in the same order: copies of other objects cost several times as much.
    const span = { id, name, kind, from, attributes, parent, parts: 0, latest: from, end: undefined };
    this.#open.set(id, span);
    return span;
  }

  /** Does nothing for a span that has ended. */
  end(span: OpenSpan, end: SpanEnd): void {
    if (span.end !== undefined) return;
    span.end = end;
    this.#close(span);
  }

  /** Ends all spans, the inner ones first. */
  endAll(end: SpanEnd): void {
    for (const span of [...this.#open.values()].toReversed()) this.end(span, end);
  }

  #close(span: OpenSpan): void {
    if (span.end === undefined || span.parts > 0) return;
    const { id, parent, name, kind, from, latest, end } = span;
    this.#open.delete(id);
    const to = Math.max(end.to, latest);
    this.#emit({
      id,
      parentId: parent?.id ?? this.#outerId,
      name,
      kind,
      from,
      to,
      attributes: end.attributes === undefined ? span.attributes : { ...span.attributes, ...end.attributes },
      error: end.error,
    });
    if (parent === undefined) return;
    parent.parts -= 1;
    parent.latest = Math.max(parent.latest, to);
    this.#close(parent);
  }
}
