/** The XML documents of S3: a page of a listing, and errors. */
import type { ServerResponse } from 'node:http';
import type { BucketPage, ListingQuery } from './bucket-listing.js';

/** The `ListBucketResult` document of a page. */
export function listingXml(query: ListingQuery, page: BucketPage): string {
  const { objects, commonPrefixes, resumeAfter } = page;
  return [
    `${XML_DECLARATION}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`,
    element('Name', 'data.binance.vision'),
    element('Prefix', query.prefix),
    element('MaxKeys', query.maxKeys),
    query.delimiter === '' ? '' : element('Delimiter', query.delimiter),
    element('IsTruncated', resumeAfter !== undefined),
    resumeAfter === undefined ? '' : element('NextMarker', resumeAfter),
    ...objects.map(({ key, lastModified, etag, sizeBytes }) => {
      // S3 keeps whole seconds, so that a listing and the Last-Modified header agree.
      const seconds = lastModified.toISOString().replace(/\.\d+Z$/, '.000Z');
      const facts = [element('LastModified', seconds), element('ETag', etag), element('Size', sizeBytes)];
      return `<Contents>${element('Key', key)}${facts.join('')}<StorageClass>STANDARD</StorageClass></Contents>`;
    }),
    ...commonPrefixes.map((key) => `<CommonPrefixes>${element('Prefix', key)}</CommonPrefixes>`),
    '</ListBucketResult>',
  ].join('');
}

/** Status and message of each error code of S3 that the server sends. */
const REFUSALS = {
  InternalError: [500, 'We encountered an internal error. Please try again.'],
  InvalidArgument: [400, 'max-keys or delimiter is wrong; the only delimiter of this archive is /'],
  InvalidRange: [416, 'The requested range is not satisfiable'],
  InvalidURI: [400, "Couldn't parse the specified URI."],
  MethodNotAllowed: [405, 'The specified method is not allowed against this resource.'],
  NoSuchKey: [404, 'The specified key does not exist.'],
} as const;

export type RefusalCode = keyof typeof REFUSALS;

/** Sends the error document, which repeats the requested key. Node drops the body for HEAD. */
export function sendRefusal(
  response: ServerResponse,
  code: RefusalCode,
  { key, headers = {} }: { readonly key?: string; readonly headers?: Readonly<Record<string, string>> } = {},
): void {
  const [status, message] = REFUSALS[code];
  const named = key === undefined ? '' : element('Key', key);
  const facts = element('Code', code) + element('Message', message) + named;
  const ids = '<RequestId>0000000000000000</RequestId><HostId>cryptodl</HostId>';
  sendXml(response, status, `${XML_DECLARATION}<Error>${facts}${ids}</Error>`, headers);
}

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

const element = (name: string, text: string | number | boolean): string =>
  `<${name}>${escapeXml(String(text))}</${name}>`;

const XML_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n';
