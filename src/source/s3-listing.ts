/** A reader of the answers of S3 ListObjects and ListObjectsV2. */
import { CryptodlError } from '../model/errors.js';
import type { ListedObject, ListingFormat, ListingPage } from './source.js';
import { isLabel } from '../text/label.js';
import { readXml } from '../text/xml.js';
import type { XmlElement } from '../text/xml.js';

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
  const page = rootOf(body);
  const encoded = text(page, 'EncodingType') === 'url';
  const name = (value: string): string => (encoded ? urlDecoded(value) : value);
  const nextMarker = text(page, 'NextMarker');
  const continuationToken = text(page, 'NextContinuationToken');
  return {
    objects: all(page, 'Contents').map((object) => objectOf(object, name)),
    prefixes: all(page, 'CommonPrefixes').map((common) => name(prefixOf(common))),
    truncated: isTruncated(page),
    ...(nextMarker === undefined || nextMarker === '' ? {} : { nextMarker: name(nextMarker) }),
    ...(continuationToken === undefined ? {} : { continuationToken }),
  };
}

function rootOf(body: Buffer): XmlElement {
  let root: XmlElement | undefined;
  let problem = '';
  try {
    root = readXml(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch (error) {
    problem = error instanceof SyntaxError ? `: ${error.message}` : '; it is not UTF-8';
  }
  if (root?.name === 'ListBucketResult') return root;
  const head = body.subarray(0, 2000).toString('utf8').replaceAll(/\s+/g, ' ').slice(0, 80);
  throw malformed(`not a bucket listing: ${JSON.stringify(head)}${problem}`);
}

/** Throws if the element is missing, because further pages would then be unknown. */
function isTruncated(page: XmlElement): boolean {
  const value = text(page, 'IsTruncated');
  if (value === 'true' || value === 'false') return value === 'true';
  throw malformed(`a listing does not say whether it continues: ${JSON.stringify(value?.slice(0, 40))}`);
}

function urlDecoded(value: string): string {
  try {
    return decodeURIComponent(value.replaceAll('+', ' '));
  } catch (error) {
    throw new CryptodlError('listing-malformed', `a listed name is not url-encoded: ${value.slice(0, 80)}`, {
      cause: error,
    });
  }
}

function objectOf(object: XmlElement, name: (value: string) => string): ListedObject {
  const key = text(object, 'Key');
  const size = text(object, 'Size') ?? '';
  const bytes = Number(size);
  if (key === undefined || key === '' || !/^\d+$/.test(size) || !Number.isSafeInteger(bytes))
    throw malformed(`a listed object has no key or size: ${JSON.stringify(key?.slice(0, 80))}`);
  return {
    key: name(key),
    bytes,
    etag: label(object, 'ETag').replaceAll('"', ''),
    lastModified: label(object, 'LastModified'),
  };
}

/** A text that a manifest may keep; empty if the object has none. */
function label(object: XmlElement, name: string): string {
  const value = text(object, name) ?? '';
  if (!isLabel(value))
    throw malformed(`the ${name} of a listed object is longer than 256 characters or has control characters`);
  return value;
}

function prefixOf(common: XmlElement): string {
  const prefix = text(common, 'Prefix');
  if (prefix === undefined || prefix === '') throw malformed('a listed folder has no name');
  return prefix;
}

/** The children with this name. Throws for text between children, because it can be the rest of a damaged tag. */
function all(parent: XmlElement, name: string): XmlElement[] {
  if (parent.text.trim() !== '')
    throw malformed(`text in <${parent.name}>: ${parent.text.trim().slice(0, 80)}`);
  return parent.children.filter((child) => child.name === name);
}

/** The text of the child with this name; undefined if there is none. Throws if there are two. */
function text(parent: XmlElement, name: string): string | undefined {
  const [found, more] = all(parent, name);
  if (more !== undefined) throw malformed(`<${parent.name}> has <${name}> twice`);
  return found === undefined ? undefined : leafText(found);
}

function leafText(element: XmlElement): string {
  if (element.children.length > 0) throw malformed(`<${element.name}> is not a text`);
  return element.text;
}

function malformed(message: string): CryptodlError {
  return new CryptodlError('listing-malformed', message);
}
