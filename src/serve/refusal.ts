/** S3 error responses, and helpers that write XML. */
import type { ServerResponse } from 'node:http';

/** A response with an S3 error document. */
export interface Refusal {
  readonly status: number;
  /** S3's own error code, such as `NoSuchKey`. */
  readonly refusal: string;
  readonly message: string;
  /** The requested key; the document repeats it. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A 400 response for a wrong parameter. */
export function invalidArgument(message: string): Refusal {
  return { status: 400, refusal: 'InvalidArgument', message };
}

/** The 404 response of S3 for an unknown key. */
export function noSuchKey(key: string): Refusal {
  return { status: 404, refusal: 'NoSuchKey', message: 'The specified key does not exist.', key };
}

export const INVALID_URI: Refusal = {
  status: 400,
  refusal: 'InvalidURI',
  message: "Couldn't parse the specified URI.",
};

export const METHOD_NOT_ALLOWED: Refusal = {
  status: 405,
  refusal: 'MethodNotAllowed',
  message: 'The specified method is not allowed against this resource.',
  headers: { Allow: 'GET, HEAD' },
};

export const INTERNAL_ERROR: Refusal = {
  status: 500,
  refusal: 'InternalError',
  message: 'We encountered an internal error. Please try again.',
};

/** Sends the error document. Node drops the body for HEAD. */
export function sendRefusal(response: ServerResponse, refused: Refusal): void {
  const key = refused.key === undefined ? '' : element('Key', refused.key);
  const body =
    `${XML_DECLARATION}<Error>${element('Code', refused.refusal)}${element('Message', refused.message)}${key}` +
    '<RequestId>0000000000000000</RequestId><HostId>cryptodl</HostId></Error>';
  sendXml(response, refused.status, body, refused.headers);
}

/** Sends a complete XML document. */
export function sendXml(
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/xml',
    'Content-Length': bytes.length,
  });
  response.end(bytes);
}

const NAMED: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text as XML content; control characters become numeric references, as S3 writes them. */
function escapeXml(text: string): string {
  // eslint-disable-next-line no-control-regex -- the expression must match control characters
  return text.replace(/[&<>"\u0000-\u001f\u007f]/g, (c) => NAMED[c] ?? `&#x${c.charCodeAt(0).toString(16)};`);
}

/** One element with text content. */
export function element(name: string, text: string | number | boolean): string {
  return `<${name}>${escapeXml(String(text))}</${name}>`;
}

export const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
