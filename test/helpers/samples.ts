/** Real archive files and recorded answers, kept outside the repository. */
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inflateRawSync } from 'node:zlib';

const PLACE = placeOf('CRYPTODL_SAMPLES', 'vision-samples');

/** Folder that holds `data/`: CRYPTODL_SAMPLES (it, or its `data`), else beside the checkout. */
export const SAMPLES = basename(PLACE) === 'data' ? dirname(PLACE) : PLACE;

/** Folder of the recorded answers of REST: CRYPTODL_REST_SAMPLES, else beside the checkout. */
export const REST_SAMPLES = placeOf('CRYPTODL_REST_SAMPLES', 'rest-samples');

/** Folder of the files that other programs wrote: CRYPTODL_VENUE_SAMPLES, else beside the checkout. */
export const VENUE_SAMPLES = placeOf('CRYPTODL_VENUE_SAMPLES', 'venue-samples');

function placeOf(variable: string, folder: string): string {
  return process.env[variable] ?? fileURLToPath(new URL(`../../../shared/${folder}`, import.meta.url));
}

/** Why tests of these folders below SAMPLES are skipped; undefined when all are there. */
export function samplesMissing(...folders: readonly string[]): string | undefined {
  return missing(SAMPLES, folders, 'CRYPTODL_SAMPLES to the folder of the real archive files');
}

/** The same of REST_SAMPLES. */
export function restSamplesMissing(...files: readonly string[]): string | undefined {
  return missing(REST_SAMPLES, files, 'CRYPTODL_REST_SAMPLES to the folder of the recorded answers');
}

/** The same of VENUE_SAMPLES. */
export function venueSamplesMissing(...files: readonly string[]): string | undefined {
  return missing(VENUE_SAMPLES, files, 'CRYPTODL_VENUE_SAMPLES to the folder of the files of other programs');
}

function missing(place: string, names: readonly string[], help: string): string | undefined {
  const absent = names.filter((name) => !existsSync(join(place, name)));
  return absent.length === 0 ? undefined : `skipped: no ${absent.join(', ')} at ${place} (set ${help})`;
}

const LOCAL_HEADER = 30;

/** Bytes of the first member of a zip, which is the only one of every sample; shares nothing with the product. */
export function firstMember(zip: Buffer): Buffer {
  const start = LOCAL_HEADER + zip.readUInt16LE(26) + zip.readUInt16LE(28);
  return inflateRawSync(zip.subarray(start));
}

export interface PublishedCsv {
  readonly header: readonly string[] | undefined;
  /** In their published order; no sample has a comma within a cell, and `""` is a blank. */
  readonly rows: string[][];
}

/** A header's cells are all names. */
export function readPublished(csv: Buffer): PublishedCsv {
  const lines = csv.toString('utf8').split('\n');
  if (lines.at(-1) === '') lines.pop();
  const rows = lines.map((line) => line.split(',').map((cell) => (cell === '""' ? '' : cell)));
  const header = rows[0]?.every((cell) => /^[a-z_]+$/.test(cell)) === true ? rows.shift() : undefined;
  return { header, rows };
}
