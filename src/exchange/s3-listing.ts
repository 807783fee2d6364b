/** A reader of the answers of S3 ListObjects and ListObjectsV2. */
import type { ListedObject, ListingFormat, ListingPage } from './exchange.js';
import { isUtf8 } from 'node:buffer';
import { SaxesParser } from 'saxes';
import { CryptodlError } from '../model/errors.js';
import { isLabel } from '../text/json.js';

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

// Reads the documents of S3. A damaged document must not count as a shorter one.

interface XmlElement {
  readonly name: string;
  readonly children: XmlElement[];
  /** Text directly in the element. */
  text: string;
}

/** Parts of XML that S3 does not write. A damaged tag could hide its object in them. */
const STRANGE = ['comment', 'cdata', 'doctype', 'processinginstruction'] as const;

/** The root element; undefined for an empty document. Throws for a document that is not complete and well-formed XML. */
function readXml(document: string): XmlElement | undefined {
  const outside: XmlElement = { name: '', children: [], text: '' };
  const open = [outside];
  const parser = new SaxesParser();
  // Without a prototype, whose properties are no entities.
  parser.ENTITIES = Object.assign(Object.create(null), { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" });
  parser.on('opentag', ({ name }) => {
    const element: XmlElement = { name, children: [], text: '' };
    open.at(-1)?.children.push(element);
    open.push(element);
  });
  parser.on('closetag', () => open.pop());
  parser.on('text', (text) => {
    (open.at(-1) ?? outside).text += text;
  });
  for (const kind of STRANGE)
    parser.on(kind, () => {
      throw new SyntaxError(`it has a ${kind}`);
    });
  parser.write(document).close();
  return outside.children[0];
}

/**
 * The root of a document in UTF-8. Throws `listing-malformed` for anything but a complete document of this name. Blanks may stand before
 * the document: S3 sends them while it puts parts together.
 */
function rootOf(body: Buffer, name: string): XmlElement {
  let root: XmlElement | undefined;
  let problem = '';
  try {
    if (isUtf8(body)) root = readXml(body.toString('utf8').trimStart());
    else problem = '; it is not UTF-8';
  } catch (error) {
    problem = `: ${(error as Error).message}`;
  }
  if (root?.name === name) return root;
  const head = body.subarray(0, 2000).toString('utf8').replaceAll(/\s+/g, ' ').slice(0, 80);
  throw malformed(`not a ${name}: ${JSON.stringify(head)}${problem}`);
}

/** The children with this name. Throws for text between children, because it can be the rest of a damaged tag. */
function childrenOf(parent: XmlElement, name: string): XmlElement[] {
  checkChildren(parent);
  return parent.children.filter((child) => child.name === name);
}

function checkChildren({ name, text }: XmlElement): void {
  if (text !== '' && text.trim() !== '') throw malformed(`text in <${name}>: ${text.trim().slice(0, 80)}`);
}

/** The text of the child with this name; undefined if there is none. Throws if there are two. */
function textIn(parent: XmlElement, name: string): string | undefined {
  checkChildren(parent);
  let found: XmlElement | undefined;
  for (const child of parent.children) {
    if (child.name !== name) continue;
    if (found !== undefined) throw malformed(`<${parent.name}> has <${name}> twice`);
    found = child;
  }
  if (found !== undefined && found.children.length > 0) throw malformed(`<${found.name}> is not a text`);
  return found?.text;
}

function neededIn(parent: XmlElement, name: string): string {
  const text = textIn(parent, name) ?? '';
  if (text === '') throw malformed(`<${parent.name}> has no ${name}`);
  return text;
}

/** A text that a manifest may keep, by default empty. Throws for control characters, and above 256 characters. */
function labelIn(parent: XmlElement, name: string): string {
  const text = textIn(parent, name) ?? '';
  if (isLabel(text)) return text;
  throw malformed(`the ${name} in <${parent.name}> is longer than 256 characters or has control characters`);
}

const malformed = (message: string): CryptodlError => new CryptodlError('listing-malformed', message);
