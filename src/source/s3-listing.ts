/** A reader of the answers of S3 ListObjects and ListObjectsV2. */
import { CryptodlError } from '../model/errors.js';
import type { ListedObject, ListingFormat, ListingPage } from './source.js';
import { isLabel } from '../text/label.js';

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

/**
 * A strict reader for the XML of bucket listings: declaration, elements, attributes, text, the five predefined entities and numeric
 * entities. It refuses incomplete and unbalanced documents and all other XML, because a damaged tag could otherwise hide its object.
 */

interface XmlElement {
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** Text directly in the element, with resolved entities. */
  readonly text: string;
}

const DECLARATION =
  /^\uFEFF?(?:<\?xml[ \t\n]+version=(?:"1\.0"|'1\.0')(?:[ \t\n]+encoding=(?:"[Uu][Tt][Ff]-8"|'[Uu][Tt][Ff]-8'))?(?:[ \t\n]+standalone=(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\n]*\?>)?[ \t\n]*/;
const TAG = /<(\/?)([A-Za-z_][\w.:-]*)((?:[ \t\n]+[A-Za-z_][\w.:-]*=(?:"[^"<]*"|'[^'<]*'))*)[ \t\n]*(\/?)>/;
const ATTRIBUTE = /([\w.:-]+)=(?:"([^"]*)"|'([^']*)')/g;
// eslint-disable-next-line no-control-regex -- the expression must match control characters
const NO_CHARACTER = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;
const ENTITIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }),
);

interface OpenElement extends XmlElement {
  readonly children: XmlElement[];
  text: string;
}

/** The root element. Throws a SyntaxError with the problem and its position. */
function readXml(document: string): XmlElement {
  const xml = document.replaceAll(/\r\n?/g, '\n');
  const outside: OpenElement = { name: '', children: [], text: '' };
  const open: [OpenElement, ...OpenElement[]] = [outside];
  const tags = new RegExp(TAG, 'y');
  let at = DECLARATION.exec(xml)?.[0].length ?? 0;
  while (at < xml.length) {
    const next = xml.indexOf('<', at);
    if (next === at) {
      tags.lastIndex = at;
      at += takeTag(tags.exec(xml), at, open);
      continue;
    }
    const end = next < 0 ? xml.length : next;
    (open.at(-1) ?? outside).text += textOf(xml.slice(at, end), at);
    at = end;
  }
  const [root, more] = outside.children;
  if (root === undefined || more !== undefined || /[^ \t\n]/.test(outside.text))
    throw wrong('not one element', xml.length);
  if (open.length > 1) throw wrong('an element is not closed', xml.length);
  return root;
}

/** Adds the tag to the open elements, or closes one. Returns the length of the tag. */
function takeTag(tag: RegExpExecArray | null, at: number, open: [OpenElement, ...OpenElement[]]): number {
  if (tag === null) throw wrong('no tag', at);
  const [whole, closing, name = '', attributes = '', selfClosing] = tag;
  const parent = open.at(-1) ?? open[0];
  if (closing === '/') {
    if (open.length === 1 || parent.name !== name || attributes !== '' || selfClosing === '/')
      throw wrong(`</${name}> closes nothing`, at);
    open.pop();
  } else {
    if (attributes !== '') checkAttributes(attributes, at);
    const element: OpenElement = { name, children: [], text: '' };
    parent.children.push(element);
    if (selfClosing !== '/') open.push(element);
  }
  return whole.length;
}

/** The values of attributes are not used, but a damaged attribute shows a damaged document. */
function checkAttributes(attributes: string, at: number): void {
  const names = new Set<string>();
  for (const [, name = '', double, single = ''] of attributes.matchAll(ATTRIBUTE)) {
    if (names.has(name)) throw wrong(`two attributes ${name}`, at);
    names.add(name);
    textOf(double ?? single, at);
  }
}

function textOf(raw: string, at: number): string {
  if (NO_CHARACTER.test(raw) || raw.includes(']]>')) throw wrong('characters that XML does not have', at);
  if (!raw.includes('&')) return raw;
  return raw.replaceAll(/&(?:([#a-z0-9]{1,8});)?/gi, (whole, entity = '') => {
    const character = ENTITIES.get(entity) ?? characterOf(entity);
    if (character === undefined) throw wrong(`${JSON.stringify(whole)} is not an entity`, at);
    return character;
  });
}

function characterOf(entity: string): string | undefined {
  const [, hex, decimal] = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/i.exec(entity) ?? [];
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isCharacter ? String.fromCodePoint(code) : undefined;
}

function wrong(problem: string, at: number): SyntaxError {
  return new SyntaxError(`${problem} at ${at}`);
}
