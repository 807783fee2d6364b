/** S3's ListObjects (v1) and ListObjectsV2 answers: the elements that count, each where it belongs and once. */
import { CryptodlError } from '../errors.js';
import { readXml } from './xml-element.js';
import type { XmlElement } from './xml-element.js';

export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  /** Without quotes. */
  readonly etag: string;
  readonly lastModified: string;
  /** Of its sidecar; only in copies, which have no sidecars of their own. */
  readonly sidecarEtag?: string;
}

export interface ListingPage {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
  readonly truncated: boolean;
  readonly nextMarker?: string;
  readonly continuationToken?: string;
}

/** Throws `listing-malformed` for anything that is not a complete listing document in UTF-8. */
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
  let why = '';
  try {
    root = readXml(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch (error) {
    why = error instanceof SyntaxError ? `: ${error.message}` : '; it is not UTF-8';
  }
  if (root?.name === 'ListBucketResult') return root;
  const head = body.subarray(0, 2000).toString('utf8').replaceAll(/\s+/g, ' ').slice(0, 80);
  throw malformed(`not a bucket listing: ${JSON.stringify(head)}${why}`);
}

/** Without it nobody knows whether objects are missing behind the last one. */
function isTruncated(page: XmlElement): boolean {
  const said = text(page, 'IsTruncated');
  if (said === 'true' || said === 'false') return said === 'true';
  throw malformed(`a listing does not say whether it goes on: ${JSON.stringify(said?.slice(0, 40))}`);
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
    etag: (text(object, 'ETag') ?? '').replaceAll('"', ''),
    lastModified: text(object, 'LastModified') ?? '',
  };
}

function prefixOf(common: XmlElement): string {
  const prefix = text(common, 'Prefix');
  if (prefix === undefined || prefix === '') throw malformed('a listed folder has no name');
  return prefix;
}

/** The children of that name; text beside children is what is left of a damaged tag. */
function all(parent: XmlElement, name: string): XmlElement[] {
  if (parent.text.trim() !== '')
    throw malformed(`text in <${parent.name}>: ${parent.text.trim().slice(0, 80)}`);
  return parent.children.filter((child) => child.name === name);
}

/** Undefined when there is none. Two would be two objects in one. */
function text(parent: XmlElement, name: string): string | undefined {
  const [found, more] = all(parent, name);
  if (more !== undefined) throw malformed(`<${parent.name}> has <${name}> twice`);
  return found === undefined ? undefined : leafText(found);
}

function leafText(element: XmlElement): string {
  if (element.children.length > 0) throw malformed(`<${element.name}> is no text`);
  return element.text;
}

function malformed(message: string): CryptodlError {
  return new CryptodlError('listing-malformed', message);
}
