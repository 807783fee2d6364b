/** Spans in the JSON form of OTLP, the protocol of OpenTelemetry: the types, and the lines that its collector writes and reads. */
import { TOOL_VERSION } from '../model/version.js';
import { jsonString } from '../text/printable.js';

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
const RESOURCE = { 'service.name': 'cryptodl', 'service.version': TOOL_VERSION };
const ERROR_STATUS = 2;

/** The beginning of each line. */
export const LINE_START = '{"resourceSpans":[{"resource":{"attributes":[';

/** One line without its end. The argument has spans as `spanText` returns them. */
export function resourceSpansLine(spans: readonly string[]): string {
  const head = `${LINE_START}${keyValues(RESOURCE).join(',')}]},"scopeSpans":[{"scope":`;
  return `${head}${JSON.stringify(SCOPE)},"spans":[${spans.join(',')}]}]}]}`;
}

/** The span as JSON, with masked passwords. Joined from parts: a run with a trace spends most of its further time here. */
export function spanText(traceId: string, span: Span): string {
  const { id, parentId, name, kind, from, to, attributes, error } = span;
  const parent = parentId === undefined ? '' : `"parentSpanId":"${parentId}",`;
  const status = error === undefined ? '{}' : `{"code":${ERROR_STATUS},"message":${jsonString(error)}}`;
  const times = `"startTimeUnixNano":"${nanoseconds(from)}","endTimeUnixNano":"${nanoseconds(to)}"`;
  const head = `{"traceId":"${traceId}","spanId":"${id}",${parent}"name":${jsonString(name)},"kind":${kind},${times}`;
  return `${head},"attributes":[${keyValues(attributes).join(',')}],"status":${status}}`;
}

/** 64-bit integers are text in the JSON form of protocol buffers. */
function keyValues(attributes: Attributes): string[] {
  const list: string[] = [];
  for (const key in attributes) {
    const value = attributes[key];
    if (value !== undefined) list.push(`{"key":"${key}","value":${valueText(value)}}`);
  }
  return list;
}

function valueText(value: Value): string {
  if (typeof value === 'string') return `{"stringValue":${jsonString(value)}}`;
  if (typeof value === 'boolean') return `{"boolValue":${value}}`;
  return Number.isInteger(value) ? `{"intValue":"${value}"}` : `{"doubleValue":${value}}`;
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
