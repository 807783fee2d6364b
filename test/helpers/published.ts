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
  publishZip(folder, key, makeZip([{ name: memberOf(key), data: csv, level: 1 }]), sidecar);
}

/** The same with the lines of the CSV, and a key without its ending. */
export function writeObject(folder: string, key: string, lines: readonly string[]): void {
  publish(folder, `${key}.zip`, `${lines.join('\n')}\n`);
}

export function publishZip(folder: string, key: string, zip: Buffer, sidecar = USUAL): void {
  mkdirSync(dirname(join(folder, key)), { recursive: true });
  writeFileSync(join(folder, key), zip);
  const text = sidecar(createHash('sha256').update(zip).digest('hex'), basename(key));
  if (text !== null) writeFileSync(join(folder, `${key}.CHECKSUM`), text);
}

/** The first line of a CSV of bars. */
export const BARS_HEADER =
  'open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore\n';

/** A CSV with the hourly bars of these days, all at one price. `hours`: from the start of each day; more than 24 lead into the next. */
export function hourlyBars(
  days: readonly string[],
  price: number,
  { hours = 24, without = [] }: { hours?: number; without?: readonly number[] } = {},
): string {
  const given = Array.from({ length: hours }, (_, hour) => hour).filter((hour) => !without.includes(hour));
  const opens = days.flatMap((day) => given.map((hour) => Date.parse(`${day}T00:00:00Z`) + hour * 3_600_000));
  const rows = opens.map(
    (open) => `${open},${price},${price},${price},${price},1,${open + 3_599_999},1,1,1,1,0\n`,
  );
  return BARS_HEADER + rows.join('');
}
