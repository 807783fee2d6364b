/** A reader of the answers of S3 ListObjects and ListObjectsV2. */
import type { ListedObject, ListingFormat, ListingPage } from './exchange.js';
import { rootOf, childrenOf, textIn, neededIn, labelIn, malformed, type XmlElement } from './s3-xml.js';

/** Pages by marker, or by token for stores with only ListObjectsV2. */
export const S3_LISTING: ListingFormat = {
  startsAnywhere: true,
  address: ({ prefix, marker, token, pageSize }) => {
    const size = pageSize === undefined ? '' : `&max-keys=${pageSize}`;
    const base = `/?delimiter=%2F&prefix=${encodeURIComponent(prefix)}${size}`;
    if (token !== undefined) return `${base}&list-type=2&continuation-token=${encodeURIComponent(token)}`;
    return marker === undefined ? base : `${base}&marker=${encodeURIComponent(marker)}`;
  },
  parse: parseListing,
};

/** Throws `listing-malformed` for anything but a complete listing document in UTF-8. */
export function parseListing(body: Buffer): ListingPage {
  const page = rootOf(body, 'ListBucketResult');
  const name = nameReader(page);
  const nextMarker = textIn(page, 'NextMarker');
  const continuationToken = textIn(page, 'NextContinuationToken');
  return {
    objects: childrenOf(page, 'Contents').map((object) => objectOf(object, name)),
    prefixes: childrenOf(page, 'CommonPrefixes').map((common) => name(neededIn(common, 'Prefix'))),
    truncated: isTruncated(page),
    ...(nextMarker === undefined || nextMarker === '' ? {} : { nextMarker: name(nextMarker) }),
    ...(continuationToken === undefined ? {} : { continuationToken }),
  };
}

/** Throws if the element is missing, because further pages would then be unknown. */
function isTruncated(page: XmlElement): boolean {
  const value = textIn(page, 'IsTruncated');
  if (value === 'true' || value === 'false') return value === 'true';
  throw malformed(`a listing does not say whether it continues: ${JSON.stringify(value?.slice(0, 40))}`);
}

function objectOf(element: XmlElement, name: (value: string) => string): ListedObject {
  const key = neededIn(element, 'Key');
  const size = neededIn(element, 'Size');
  const bytes = Number(size);
  if (!/^\d+$/.test(size) || !Number.isSafeInteger(bytes))
    throw malformed(`a listed object has no size: ${JSON.stringify(key.slice(0, 80))}`);
  return {
    key: name(key),
    bytes,
    etag: labelIn(element, 'ETag').replaceAll('"', ''),
    lastModified: labelIn(element, 'LastModified'),
  };
}

/** A function that reads the names of a document, which may be url-encoded. */
function nameReader(root: XmlElement): (value: string) => string {
  if (textIn(root, 'EncodingType') !== 'url') return (value) => value;
  return (value) => {
    try {
      return decodeURIComponent(value.replaceAll('+', ' '));
    } catch {
      throw malformed(`a listed name is not url-encoded: ${value.slice(0, 80)}`);
    }
  };
}
