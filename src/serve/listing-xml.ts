/** Writes a listing page as XML. */
import type { ListedObject, ListingPage } from './bucket-listing.js';
import { type ListingQuery, makeToken } from './bucket-listing.js';
import { XML_DECLARATION, element } from './refusal.js';

/** The `ListBucketResult` document of a page. */
export function listingXml(query: ListingQuery, page: ListingPage): string {
  const name = query.urlEncoded ? urlEncode : (key: string): string => key;
  const prefixes = page.commonPrefixes.map(
    (key) => `<CommonPrefixes>${element('Prefix', name(key))}</CommonPrefixes>`,
  );
  return [
    `${XML_DECLARATION}<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`,
    element('Name', 'data.binance.vision'),
    element('Prefix', name(query.prefix)),
    ...(query.version === 1 ? pagingV1(query, page, name) : pagingV2(query, page, name)),
    element('MaxKeys', query.maxKeys),
    query.delimiter === '' ? '' : element('Delimiter', query.delimiter),
    query.urlEncoded ? element('EncodingType', 'url') : '',
    element('IsTruncated', page.resumeAfter !== undefined),
    ...page.objects.map((object) => contents(object, name)),
    ...prefixes,
    '</ListBucketResult>',
  ].join('');
}

type Naming = (key: string) => string;

function pagingV1(query: ListingQuery, page: ListingPage, name: Naming): string[] {
  const next = query.delimiter === '' ? undefined : page.resumeAfter;
  return [element('Marker', name(query.marker)), next === undefined ? '' : element('NextMarker', name(next))];
}

function pagingV2(query: ListingQuery, page: ListingPage, name: Naming): string[] {
  const { continuationToken, startAfter } = query;
  return [
    element('KeyCount', page.objects.length + page.commonPrefixes.length),
    continuationToken === undefined ? '' : element('ContinuationToken', continuationToken),
    startAfter === undefined ? '' : element('StartAfter', name(startAfter)),
    page.resumeAfter === undefined ? '' : element('NextContinuationToken', makeToken(page.resumeAfter)),
  ];
}

function contents({ key, lastModified, etag, sizeBytes }: ListedObject, name: Naming): string {
  // S3 keeps whole seconds, so that a listing and the Last-Modified header agree.
  const seconds = lastModified.toISOString().replace(/\.\d+Z$/, '.000Z');
  return (
    `<Contents>${element('Key', name(key))}${element('LastModified', seconds)}${element('ETag', etag)}` +
    `${element('Size', sizeBytes)}<StorageClass>STANDARD</StorageClass></Contents>`
  );
}

function urlEncode(key: string): string {
  return key.split('/').map(encodeURIComponent).join('/');
}
