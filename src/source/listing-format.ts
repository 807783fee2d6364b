/** How an archive lists its objects: the addresses of its pages, and what a page says. */

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

/** Which page is asked for: names below a prefix, behind a marker or where a token of the page before leads. */
export interface PageRequest {
  readonly prefix: string;
  readonly marker?: string | undefined;
  readonly token?: string | undefined;
  readonly pageSize?: number | undefined;
}

/** How an archive lists its objects. */
export interface ListingFormat {
  /** False: every page begins with the first name of its prefix, whatever the marker. */
  readonly startsAnywhere: boolean;
  /** Address of a page below that of the listing: `/?prefix=…`. */
  address(page: PageRequest): string;
  /** The page that was answered at an address. Throws `listing-malformed` for anything that is not one, whole. */
  parse(body: Buffer, address: string): ListingPage;
}
