/** What a damaged sidecar or listing says, by readers that share nothing with the product. */
import { isUtf8 } from 'node:buffer';
import { XMLParser, XMLValidator } from 'fast-xml-parser';

/** `digest  name`; undefined when it is none. */
export function readSidecar(bytes: Buffer, name: string): string | undefined {
  const [digest = '', named = '', ...more] = bytes.toString('utf8').trimEnd().split(/\s+/);
  const isDigest =
    digest.length === 64 && Buffer.from(digest, 'hex').toString('hex') === digest.toLowerCase();
  const isNamed = more.length === 0 && (named === name || named === `*${name}`);
  return isDigest && isNamed ? digest.toLowerCase() : undefined;
}

type Node = Readonly<Record<string, unknown>>;

const xmlReader = new XMLParser({
  parseTagValue: false,
  trimValues: false,
  htmlEntities: true,
  isArray: (name) => name !== 'ListBucketResult',
});

export interface ReadPage {
  readonly objects: readonly { key: string; bytes: number; etag: string; lastModified: string }[];
  readonly prefixes: readonly string[];
  readonly truncated: string;
}

/** The page as an XML library reads it; undefined when that library, or the encoding, says that it is no XML. */
export function readPage(bytes: Buffer): ReadPage | undefined {
  const xml = bytes.toString('utf8');
  if (!isUtf8(bytes) || XMLValidator.validate(xml) !== true) return undefined;
  const root = parsed(xml)?.['ListBucketResult'];
  if (root === undefined) return undefined;
  const page = isNode(root) ? root : {};
  return {
    objects: nodes(page, 'Contents').map((object) => ({
      key: only(object, 'Key') ?? '',
      bytes: Number(only(object, 'Size')),
      etag: (only(object, 'ETag') ?? '').replaceAll('"', ''),
      lastModified: only(object, 'LastModified') ?? '',
    })),
    prefixes: nodes(page, 'CommonPrefixes').map((common) => only(common, 'Prefix') ?? ''),
    truncated: only(page, 'IsTruncated') ?? 'not said',
  };
}

/** The parser refuses some of what its validator lets pass. */
function parsed(xml: string): Node | undefined {
  try {
    return xmlReader.parse(xml) as Node;
  } catch {
    return undefined;
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null;
}

function nodes(parent: Node, name: string): Node[] {
  const found = parent[name];
  return Array.isArray(found) ? found.map((value: unknown) => (isNode(value) ? value : {})) : [];
}

/** The text of the only child of that name; undefined when there is none; a list is no text. */
function only(parent: Node, name: string): string | undefined {
  const found: unknown = parent[name];
  if (!Array.isArray(found)) return undefined;
  return found.length === 1 && typeof found[0] === 'string' ? found[0] : `${found.length} × ${name}`;
}
