/** Reads a manifest line by line and reports damaged lines instead of throwing. */
import { CryptodlError } from '../model/errors.js';
import { hasManifest } from './manifest-place.js';
import { NewerVersion } from './check-manifest-line.js';
import type { ObjectKeys } from './check-manifest-line.js';
import { emptyManifest, foldManifest } from './manifest.js';
import type { Manifest, ManifestFold, ReadLine } from './manifest.js';
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
  const { manifest, sound, damaged, newer, dropped } = await foldManifest(
    seriesFolder,
    archive,
    () => new InspectedLines(),
  );
  return { exists: await hasManifest(seriesFolder), manifest, sound, damaged, newer, dropped };
}

class InspectedLines implements ManifestFold {
  readonly manifest = emptyManifest();
  readonly sound: string[] = [];
  readonly damaged: DamagedLine[] = [];
  readonly newer: number[] = [];
  readonly dropped: DroppedLine[] = [];
  #last = 0;

  onLine({ number, text, content }: ReadLine): void {
    this.#last = number;
    const why = content instanceof CryptodlError ? content.cause : undefined;
    if (why instanceof NewerVersion) this.newer.push(number);
    else if (why instanceof Error) this.damaged.push({ number, text, why: why.message });
    if (!(content instanceof CryptodlError) && content.kind === 'dropped') this.dropped.push(content);
    if (why === undefined || why instanceof NewerVersion) this.sound.push(text);
  }

  /** Another writer may be about to give the file of this line its name. */
  onUndone(text: string): void {
    this.sound.push(text);
  }

  onTail(text: string): void {
    this.damaged.push({ number: this.#last + 1, text, why: 'it is incomplete' });
  }
}

/** The result for a manifest that was not read. */
export function uninspected(): InspectedManifest {
  return { exists: true, manifest: emptyManifest(), sound: [], damaged: [], newer: [], dropped: [] };
}
