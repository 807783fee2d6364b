/** Spans in the JSON form of OTLP, the protocol of OpenTelemetry: the types, and the lines that its collector writes and reads. */
import { TOOL_VERSION } from '../model/version.js';
import { jsonText } from '../text/printable.js';

/** INTERNAL and CLIENT. */
export type SpanKind = 1 | 3;

type Value = string | number | boolean;
export type Attributes = Readonly<Record<string, Value | undefined>>;

/** Times in milliseconds since 1970, with fractions. */
export interface Span {
  readonly id: string;
  readonly parentId?: string | undefined;
  readonly name: string;
  readonly kind: SpanKind;
  readonly from: number;
  readonly to: number;
  readonly attributes: Attributes;
  /** The message of the error of a failed span. */
  readonly error?: string | undefined;
}

const SCOPE = { name: 'cryptodl', version: TOOL_VERSION };
const RESOURCE = {
  attributes: keyValues({ 'service.name': 'cryptodl', 'service.version': TOOL_VERSION }),
};
const ERROR_STATUS = 2;

/** The beginning of each line. */
export const LINE_START = '{"resourceSpans":[{"resource":';

/** One line without its end. The argument has spans as `spanText` returns them. */
export function resourceSpansLine(spans: readonly string[]): string {
  const head = `${LINE_START}${JSON.stringify(RESOURCE)},"scopeSpans":[{"scope":`;
  return `${head}${JSON.stringify(SCOPE)},"spans":[${spans.join(',')}]}]}]}`;
}

/** The span as JSON, with masked passwords. */
export function spanText(traceId: string, span: Span): string {
  const { id, parentId, name, kind, from, to, attributes, error } = span;
  return jsonText({
    traceId,
    spanId: id,
    ...(parentId === undefined ? {} : { parentSpanId: parentId }),
    name,
    kind,
    startTimeUnixNano: nanoseconds(from),
    endTimeUnixNano: nanoseconds(to),
    attributes: keyValues(attributes),
    status: error === undefined ? {} : { code: ERROR_STATUS, message: error },
  });
}

/** 64-bit integers are text in the JSON form of protocol buffers. */
function keyValues(attributes: Attributes): object[] {
  const list: object[] = [];
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'string') list.push({ key, value: { stringValue: value } });
    else if (typeof value === 'boolean') list.push({ key, value: { boolValue: value } });
    else if (value !== undefined)
      list.push({
        key,
        value: Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value },
      });
  }
  return list;
}

/** Nanoseconds as digits. A number cannot hold them exactly. */
function nanoseconds(ms: number): string {
  const whole = Math.floor(ms);
  return `${whole}${String(Math.floor((ms - whole) * 1e6)).padStart(6, '0')}`;
}

/** The trace and the span that a program above this one has begun. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
}

const TRACE_PARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/;

/** Reads the text of `TRACEPARENT` (W3C Trace Context). Undefined if it is not valid. */
export function traceParentOf(text: string | undefined): TraceParent | undefined {
  const [, version, traceId, spanId, more] = TRACE_PARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || version === 'ff') return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return version === '00' && more !== undefined ? undefined : { traceId, spanId };
}
