/** Reads a manifest line by line and reports damaged lines instead of throwing. */
import { CryptodlError } from '../model/errors.js';
import { hasManifest } from './manifest-place.js';
import { NewerVersion } from './check-manifest-line.js';
import type { ObjectKeys } from './check-manifest-line.js';
import { emptyManifest, readLinesInto } from './manifest.js';
import type { Manifest } from './manifest.js';
import type { DroppedLine } from './manifest-line.js';

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
  const manifest = emptyManifest();
  const sound: string[] = [];
  const damaged: DamagedLine[] = [];
  const newer: number[] = [];
  const dropped: DroppedLine[] = [];
  let tail: string | undefined;
  const onTail = (text: string): void => {
    tail = text;
  };
  let last = 0;
  for await (const lines of readLinesInto(manifest, seriesFolder, archive, onTail))
    for (const { number, text, line } of lines) {
      last = number;
      const why = line instanceof CryptodlError ? line.cause : undefined;
      if (why instanceof NewerVersion) newer.push(number);
      else if (why instanceof Error) damaged.push({ number, text, why: why.message });
      if (!(line instanceof CryptodlError) && line.kind === 'dropped') dropped.push(line);
      if (why === undefined || why instanceof NewerVersion) sound.push(text);
    }
  if (tail !== undefined) damaged.push({ number: last + 1, text: tail, why: 'it is incomplete' });
  return { exists: await hasManifest(seriesFolder), manifest, sound, damaged, newer, dropped };
}

/** The result for a manifest that was not read. */
export function uninspected(): InspectedManifest {
  return { exists: true, manifest: emptyManifest(), sound: [], damaged: [], newer: [], dropped: [] };
}
