/** The few tags of S3's ListObjects (v1) and ListObjectsV2 answers; no entity beyond XML's five and numeric ones is known. */
import { CryptodlError } from '../errors.js';

export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  /** Without quotes. */
  readonly etag: string;
  readonly lastModified: string;
}

export interface ListingPage {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
  readonly truncated: boolean;
  readonly nextMarker?: string;
  readonly continuationToken?: string;
}

/** Throws `listing-malformed` for anything that is not a complete listing document. */
export function parseListing(xml: string): ListingPage {
  if (
    !/<ListBucketResult[\s>]/.test(xml.slice(0, 2000)) ||
    !/<\/ListBucketResult>\s*$/.test(xml.slice(-200))
  ) {
    const head = xml.replaceAll(/\s+/g, ' ').slice(0, 80);
    throw new CryptodlError('listing-malformed', `not a bucket listing: ${JSON.stringify(head)}`);
  }
  const encoded = text(xml, 'EncodingType') === 'url';
  const name = (value: string): string => (encoded ? urlDecoded(value) : value);
  const objects = blocks(xml, 'Contents').map((block) => objectOf(block, name));
  const prefixes = blocks(xml, 'CommonPrefixes').flatMap((block) =>
    blocks(block, 'Prefix').map((p) => name(unescape(p))),
  );
  const outside = xml.replaceAll(/<(Contents|CommonPrefixes)>.*?<\/\1>/gs, '');
  const nextMarker = text(outside, 'NextMarker');
  const continuationToken = text(outside, 'NextContinuationToken');
  return {
    objects,
    prefixes,
    truncated: text(outside, 'IsTruncated') === 'true',
    ...(nextMarker === undefined || nextMarker === '' ? {} : { nextMarker: name(nextMarker) }),
    ...(continuationToken === undefined ? {} : { continuationToken }),
  };
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

function objectOf(block: string, name: (value: string) => string): ListedObject {
  const key = text(block, 'Key');
  const size = text(block, 'Size') ?? '';
  if (key === undefined || key === '' || !/^\d+$/.test(size)) {
    throw new CryptodlError('listing-malformed', `a listed object has no key or size: ${block.slice(0, 80)}`);
  }
  return {
    key: name(key),
    bytes: Number(size),
    etag: (text(block, 'ETag') ?? '').replaceAll('"', ''),
    lastModified: text(block, 'LastModified') ?? '',
  };
}

function blocks(xml: string, tag: string): string[] {
  const found: string[] = [];
  const open = `<${tag}>`;
  const close = `</${tag}>`;
  for (let at = xml.indexOf(open); at >= 0; at = xml.indexOf(open, at)) {
    const end = xml.indexOf(close, at);
    if (end < 0) throw new CryptodlError('listing-malformed', `<${tag}> is not closed`);
    found.push(xml.slice(at + open.length, end));
    at = end + close.length;
  }
  return found;
}

function text(xml: string, tag: string): string | undefined {
  const start = xml.indexOf(`<${tag}>`);
  const end = xml.indexOf(`</${tag}>`, start);
  return start < 0 || end < 0 ? undefined : unescape(xml.slice(start + tag.length + 2, end));
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescape(value: string): string {
  if (!value.includes('&')) return value;
  return value.replaceAll(/&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]+);/gi, (whole, entity: string) => {
    if (!entity.startsWith('#')) return ENTITIES[entity] ?? whole;
    const code =
      entity[1] === 'x' || entity[1] === 'X' ? Number.parseInt(entity.slice(2), 16) : Number(entity.slice(1));
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
