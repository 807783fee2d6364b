/** Sound zips, sidecars and listings, as the archive publishes them. */
import { createHash } from 'node:crypto';
import { makeZip } from '../../scripts/make-zip.js';
import { listingXml } from '../../src/verbs/serve/s3-xml.js';
import { randomOf } from './mutations.js';

export const FOLDER = 'data/spot/daily/klines/BTCUSDT/1m/';
export const ZIP_NAME = 'BTCUSDT-1m-2024-01-15.zip';
export const CSV_NAME = 'BTCUSDT-1m-2024-01-15.csv';

function klines(rows: number): Buffer {
  const random = randomOf(rows);
  const price = (): string => `${42_000 + random.below(1000)}.${random.below(100)}`;
  const lines = Array.from({ length: rows }, (_, at) => {
    const time = 1_705_276_800_000 + at * 60_000;
    return `${time},${price()},${price()},${price()},${price()},1.5,${time + 59_999},9.25,7,1,2,0\n`;
  });
  return Buffer.from(lines.join(''));
}

export interface SoundZip {
  readonly name: string;
  readonly bytes: Buffer;
  readonly content: Buffer;
}

function soundZip(
  name: string,
  content: Buffer,
  make: (one: { name: string; data: Buffer }) => Buffer,
): SoundZip {
  return { name, content, bytes: make({ name: CSV_NAME, data: content }) };
}

const SMALL = klines(6);
/** Packed it is beyond the size below which zlib works at once. */
const LARGE = klines(600);
/** The dead end of a real zip: another file below a folder, of the same name. */
const TWIN = { name: `fsx-data/${CSV_NAME}`, data: 'not this one\n' };

export const ZIPS: readonly [SoundZip, ...SoundZip[]] = [
  soundZip('deflate', SMALL, (one) => makeZip([one])),
  soundZip('stored', SMALL, (one) => makeZip([{ ...one, method: 0 }])),
  soundZip('data descriptor', SMALL, (one) => makeZip([{ ...one, dataDescriptor: true }])),
  soundZip('zip64', SMALL, (one) => makeZip([{ ...one, zip64: true }], { zip64: true })),
  soundZip('two members', SMALL, (one) => makeZip([TWIN, one], { comment: 'two' })),
  soundZip('large deflate', LARGE, (one) => makeZip([one])),
  soundZip('large zip64 with data descriptor', LARGE, (one) =>
    makeZip([{ ...one, zip64: true, dataDescriptor: true }], { zip64: true }),
  ),
];

export function digest(algorithm: 'sha256' | 'md5', bytes: Buffer): string {
  return createHash(algorithm).update(bytes).digest('hex');
}

export function sidecarOf(zip: Buffer, name = ZIP_NAME): Buffer {
  return Buffer.from(`${digest('sha256', zip)}  ${name}\n`);
}

/** A page of the listing, made by the code that serves archives over loopback. */
function listingPage(
  names: readonly string[],
  folders: readonly string[],
  more: boolean,
  version: 1 | 2,
): Buffer {
  const objects = names.map((name, at) => ({
    key: FOLDER + name,
    lastModified: new Date(Date.UTC(2024, 0, 16, 7, at)),
    etag: `"${digest('md5', Buffer.from(name))}"`,
    sizeBytes: 90_000 + at,
  }));
  const commonPrefixes = folders.map((folder) => `${FOLDER}${folder}/`);
  const last = [...objects.map(({ key }) => key), ...commonPrefixes].at(-1) ?? FOLDER;
  const query = {
    prefix: FOLDER,
    delimiter: '/' as const,
    maxKeys: 1000,
    after: '',
  };
  const page = { objects, commonPrefixes, resumeAfter: more ? last : undefined };
  const text = listingXml(query, page);
  return Buffer.from(version === 1 ? text : text.replaceAll('NextMarker', 'NextContinuationToken'));
}

const days = Array.from({ length: 6 }, (_, at) => `BTCUSDT-1m-2024-01-${10 + at}.zip`);
const withSidecars = days.flatMap((name) => [name, `${name}.CHECKSUM`]);

export const LISTINGS: readonly [Buffer, ...Buffer[]] = [
  listingPage(withSidecars, [], false, 1),
  listingPage(withSidecars, [], true, 1),
  listingPage(withSidecars.slice(0, 4), ['A&B', 'C"<>', '币安人生USDT'], true, 2),
  listingPage([], ['1INCHUSDT', 'AAVEUSDT', 'BTCUSDT'], false, 1),
  listingPage([], [], false, 2),
];
