/** Reads a manifest line by line and reports damaged lines instead of throwing. */
import { completeLinesOf } from './complete-lines.js';
import { openManifest } from './manifest-place.js';
import { createLineReader, NewerVersion } from './check-manifest-line.js';
import type { LineReader, ObjectKeys } from './check-manifest-line.js';
import { applyLine, emptyManifest } from './manifest.js';
import type { Manifest } from './manifest.js';
import type { DroppedLine, ManifestLine } from './manifest-line.js';

interface DamagedLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
  readonly why: string;
}

export interface InspectedManifest {
  /** False if the series has no manifest. */
  readonly exists: boolean;
  /** The content of the valid lines. */
  readonly manifest: Manifest;
  /** The text of the valid lines and of the lines of a later version, in file order. */
  readonly sound: readonly string[];
  readonly damaged: readonly DamagedLine[];
  /** Numbers of lines that a later version of cryptodl wrote. */
  readonly newer: readonly number[];
  readonly dropped: readonly DroppedLine[];
}

export async function inspectManifest(seriesFolder: string, archive: ObjectKeys): Promise<InspectedManifest> {
  const opened = await openManifest(seriesFolder);
  const readLine = createLineReader(seriesFolder, archive);
  const manifest = emptyManifest();
  const sound: string[] = [];
  const damaged: DamagedLine[] = [];
  const newer: number[] = [];
  const dropped: DroppedLine[] = [];
  let number = 0;
  const add = (line: string): void => {
    number += 1;
    const read = readInto(manifest, readLine, line);
    if (read === 'newer') newer.push(number);
    else if (typeof read === 'string') damaged.push({ number, text: line, why: read });
    else if (read.kind === 'dropped') dropped.push(read);
    if (typeof read !== 'string' || read === 'newer') sound.push(line);
  };
  const addTail = (text: string): void => {
    damaged.push({ number: number + 1, text, why: 'it is incomplete' });
  };
  if (opened !== undefined)
    for await (const lines of completeLinesOf(opened.file, opened.path, addTail))
      for (const line of lines) add(line);
  return { exists: opened !== undefined, manifest, sound, damaged, newer, dropped };
}

/** The result for a manifest that was not read. */
export function uninspected(): InspectedManifest {
  return { exists: true, manifest: emptyManifest(), sound: [], damaged: [], newer: [], dropped: [] };
}

/** Reads a line and adds it to the manifest. Returns the line, `newer` for a line of a later version, or the problem. */
function readInto(manifest: Manifest, readLine: LineReader, text: string): ManifestLine | string {
  try {
    const line = readLine(text);
    applyLine(manifest, line);
    return line;
  } catch (error) {
    return error instanceof NewerVersion ? 'newer' : (error as Error).message;
  }
}
