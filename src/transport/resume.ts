/**
 * Going on with a body that was cut: `Range` with `If-Range`, so that whoever has another object by now sends it whole.
 * Source: RFC 9110, sections 13.1.5, 14.2 and 14.4.
 */
import { CryptodlError } from '../errors.js';
import type { PartialBody } from '../fetch.js';

type Headers = Readonly<Record<string, string>>;

export function rangeHeaders({ bytes, etag }: PartialBody): Record<string, string> {
  return { range: `bytes=${bytes}-`, 'if-range': etag };
}

/** With its quotes; undefined for weak and absent ones: those promise nothing about single bytes. */
export function strongEtag(headers: Headers): string | undefined {
  const etag = headers['etag'];
  return etag !== undefined && /^"[^"]+"$/.test(etag) ? etag : undefined;
}

/** Why a 206 cannot be put behind what is here (`partial`); undefined when it can. */
export function refuseRange(
  url: string,
  partial: PartialBody | undefined,
  headers: Headers,
): CryptodlError | undefined {
  const { host } = new URL(url);
  const refuse = (what: string): CryptodlError => new CryptodlError('http-protocol', `${host} ${what}`);
  if (partial === undefined) return refuse('answered 206 to a request for the whole');
  const range = headers['content-range'] ?? '';
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? [];
  if (Number(first) !== partial.bytes || Number(last) + 1 !== Number(total))
    return refuse(
      `answered 206 with Content-Range "${range}" when asked for the rest from ${partial.bytes} on`,
    );
  const etag = strongEtag(headers);
  if (etag !== partial.etag)
    return refuse(`answered 206 for ${etag ?? 'no ETag'} when asked for ${partial.etag}`);
  return undefined;
}
