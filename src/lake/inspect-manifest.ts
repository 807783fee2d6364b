/** A manifest line by line: what is damaged is told, not thrown. */
import { join } from 'node:path';
import { parsePeriod } from '../calendar.js';
import { readInside } from './inside.js';
import { MANIFEST } from './layout.js';
import { applyLine, emptyManifest, NewerVersion } from './manifest.js';
import type { DroppedLine, Manifest, ManifestLine } from './manifest.js';

interface DamagedLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
  readonly why: string;
  /** A whole line but for its line feed: as it stands, readers pass over it. */
  readonly isWhole?: true;
}

export interface InspectedManifest {
  /** False when there is no such file. */
  readonly exists: boolean;
  /** What its sound lines say. */
  readonly manifest: Manifest;
  /** Sound lines as they stand, in their order. */
  readonly sound: readonly string[];
  readonly damaged: readonly DamagedLine[];
  /** Numbers of lines that a later cryptodl wrote. */
  readonly newer: readonly number[];
  readonly dropped: readonly DroppedLine[];
}

export async function inspectManifest(seriesFolder: string): Promise<InspectedManifest> {
  const text = await readInside(join(seriesFolder, MANIFEST));
  const manifest = emptyManifest();
  const sound: string[] = [];
  const damaged: DamagedLine[] = [];
  const newer: number[] = [];
  const dropped: DroppedLine[] = [];
  const lines = (text ?? '').split('\n');
  const tail = lines.pop() ?? '';
  for (const [index, line] of lines.entries()) {
    const number = index + 1;
    const read = readLine(manifest, line);
    if (read === 'newer') newer.push(number);
    else if (typeof read === 'string') damaged.push({ number, text: line, why: read });
    else if (read.kind === 'dropped') dropped.push(read);
    if (typeof read !== 'string' || read === 'newer') sound.push(line);
  }
  if (tail !== '') damaged.push(tornLine(lines.length + 1, tail));
  return { exists: text !== undefined, manifest, sound, damaged, newer, dropped };
}

/** Of a manifest that is not read. */
export function uninspected(): InspectedManifest {
  return { exists: true, manifest: emptyManifest(), sound: [], damaged: [], newer: [], dropped: [] };
}

/** The line, or why it is none; its word counts from now on. */
function readLine(manifest: Manifest, text: string): ManifestLine | string {
  try {
    const line = JSON.parse(text) as ManifestLine;
    const wrong = wrongField(line);
    if (wrong !== undefined) return wrong;
    applyLine(manifest, line);
    return line;
  } catch (error) {
    if (error instanceof NewerVersion) return 'newer';
    return error instanceof SyntaxError ? 'it is no JSON' : (error as Error).message;
  }
}

function tornLine(number: number, text: string): DamagedLine {
  const read = readLine(emptyManifest(), text);
  return typeof read === 'string'
    ? { number, text, why: 'it was not written to its end' }
    : { number, text, why: 'it has no line end, so it does not count', isWhole: true };
}

const DIGEST = /^[0-9a-f]{64}$/;

/** What is not as it is written; lines of a later version are not looked at. */
function wrongField(line: unknown): string | undefined {
  if (typeof line !== 'object' || line === null) return 'it is no object';
  const fields = line as Record<string, unknown>;
  if (fields['v'] !== 1 || fields['kind'] === 'absent') return undefined;
  if (typeof fields['key'] !== 'string') return '"key" is no text';
  if (fields['kind'] === 'dropped') return formatIn(fields) ? undefined : '"format" is unknown';
  if (fields['kind'] !== 'object') return '"kind" is unknown';
  return wrongInObject(fields);
}

function wrongInObject(fields: Readonly<Record<string, unknown>>): string | undefined {
  const cadence = fields['cadence'];
  if (cadence !== 'daily' && cadence !== 'monthly') return '"cadence" is unknown';
  if (parsePeriod(cadence, String(fields['period'])) === undefined) return '"period" is no period';
  const digest = ['sha256', 'fileSha256'].find((name) => !DIGEST.test(String(fields[name])));
  if (digest !== undefined) return `"${digest}" is no SHA-256`;
  const settings = fields['settings'];
  if (typeof settings !== 'object' || settings === null || !formatIn(settings as Record<string, unknown>))
    return '"settings" say no format';
  const counts = ['bytes', 'fileBytes', ...['rows', 'fileRows'].filter((name) => name in fields)];
  const count = counts.find((name) => !Number.isSafeInteger(fields[name]) || Number(fields[name]) < 0);
  return count === undefined ? undefined : `"${count}" is no count`;
}

function formatIn({ format }: Readonly<Record<string, unknown>>): boolean {
  return format === 'parquet' || format === 'csv' || format === 'zip';
}
