/** A manifest line by line: what is damaged is told, not thrown. */
import { join } from 'node:path';
import { readRegularFile } from './path-checks.js';
import { MANIFEST } from './layout.js';
import { createLineReader, NewerVersion } from './check-line.js';
import type { LineReader } from './check-line.js';
import { applyLine, emptyManifest } from './manifest.js';
import type { Manifest } from './manifest.js';
import type { DroppedLine, ManifestLine } from './manifest-line.js';

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
  const text = await readRegularFile(join(seriesFolder, MANIFEST));
  const readLine = createLineReader(seriesFolder);
  const manifest = emptyManifest();
  const sound: string[] = [];
  const damaged: DamagedLine[] = [];
  const newer: number[] = [];
  const dropped: DroppedLine[] = [];
  const lines = (text ?? '').split('\n');
  const tail = lines.pop() ?? '';
  for (const [index, line] of lines.entries()) {
    const number = index + 1;
    const read = readInto(manifest, readLine, line);
    if (read === 'newer') newer.push(number);
    else if (typeof read === 'string') damaged.push({ number, text: line, why: read });
    else if (read.kind === 'dropped') dropped.push(read);
    if (typeof read !== 'string' || read === 'newer') sound.push(line);
  }
  if (tail !== '') damaged.push(tornLine(readLine, lines.length + 1, tail));
  return { exists: text !== undefined, manifest, sound, damaged, newer, dropped };
}

/** Of a manifest that is not read. */
export function uninspected(): InspectedManifest {
  return { exists: true, manifest: emptyManifest(), sound: [], damaged: [], newer: [], dropped: [] };
}

/** The line, or why it is none; its word counts from now on. */
function readInto(manifest: Manifest, readLine: LineReader, text: string): ManifestLine | string {
  try {
    const line = readLine(text);
    applyLine(manifest, line);
    return line;
  } catch (error) {
    return error instanceof NewerVersion ? 'newer' : (error as Error).message;
  }
}

function tornLine(readLine: LineReader, number: number, text: string): DamagedLine {
  const read = readInto(emptyManifest(), readLine, text);
  return typeof read === 'string'
    ? { number, text, why: 'it was not written to its end' }
    : { number, text, why: 'it has no line end, so it does not count', isWhole: true };
}
