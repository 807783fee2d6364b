/** Archive objects as they are published: made by hand, and read by a reader that shares nothing with the product. */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { makeZip } from '../../scripts/make-zip.js';

/** Cells of the first member's rows; a header is left out, blanks are empty in either spelling. */
export function publishedRows(zip: string): string[][] {
  const bytes = readFileSync(zip);
  const start = 30 + bytes.readUInt16LE(26) + bytes.readUInt16LE(28);
  const lines = inflateRawSync(bytes.subarray(start)).toString('utf8').trimEnd().split('\n');
  return lines
    .filter((line) => !/^[a-z]/.test(line))
    .map((line) => line.split(',').map((cell) => (cell === '""' ? '' : cell)));
}

/** Text of the sidecar of a zip; null is none. */
export type SidecarOf = (digest: string, name: string) => string | null;

const USUAL: SidecarOf = (digest, name) => `${digest}  ${name}\n`;

/** Name of the CSV that the zip of a key holds. */
export function memberOf(key: string): string {
  return basename(key).replace(/\.zip$/, '.csv');
}

/** Puts a CSV under its key into a folder that is served. */
export function publish(folder: string, key: string, csv: string, sidecar?: SidecarOf): void {
  publishZip(folder, key, makeZip([{ name: memberOf(key), data: csv }]), sidecar);
}

export function publishZip(folder: string, key: string, zip: Buffer, sidecar = USUAL): void {
  mkdirSync(dirname(join(folder, key)), { recursive: true });
  writeFileSync(join(folder, key), zip);
  const text = sidecar(createHash('sha256').update(zip).digest('hex'), basename(key));
  if (text !== null) writeFileSync(join(folder, `${key}.CHECKSUM`), text);
}
