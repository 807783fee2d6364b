/** Parses the target of a request: an object or a page of the listing. */
import { INVALID_URI, type Refusal } from './refusal.js';

const BUCKET = '/data.binance.vision';

/** A page of the listing, or the object with this key, which may not exist. */
type Target =
  | { readonly kind: 'listing'; readonly query: ReadonlyMap<string, string> }
  | { readonly kind: 'object'; readonly key: string };

const LISTING_PARAMETERS = ['prefix', 'delimiter', 'marker', 'list-type', 'max-keys'];

/**
 * Reads the target of the request line, in virtual-host style (`/<key>`) or path style
 * (`/data.binance.vision/<key>`). Percent-encoding that is not UTF-8 gives an error response.
 */
export function readTarget(url: string): Target | Refusal {
  const mark = url.indexOf('?');
  const rawPath = mark === -1 ? url : url.slice(0, mark);
  const path = decode(rawPath);
  const query = readQuery(mark === -1 ? '' : url.slice(mark + 1));
  if (path === undefined || query === undefined || !path.startsWith('/')) return INVALID_URI;
  const isRoot = path === '/' || path === BUCKET || path === `${BUCKET}/`;
  if (isRoot && LISTING_PARAMETERS.some((name) => query.has(name))) return { kind: 'listing', query };
  const key = path.startsWith(`${BUCKET}/`) ? path.slice(BUCKET.length + 1) : path.slice(1);
  return { kind: 'object', key };
}

function readQuery(text: string): ReadonlyMap<string, string> | undefined {
  const query = new Map<string, string>();
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(plusAsBlank(equals === -1 ? pair : pair.slice(0, equals)));
    const value = decode(plusAsBlank(equals === -1 ? '' : pair.slice(equals + 1)));
    if (name === undefined || value === undefined) return undefined;
    if (!query.has(name)) query.set(name, value);
  }
  return query;
}

function plusAsBlank(text: string): string {
  return text.replaceAll('+', ' ');
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
