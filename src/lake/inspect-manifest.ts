/** The content of the valid lines of a manifest, and what its lines tell beyond it. */
import { CryptodlError } from '../model/errors.js';
import type { Format } from '../model/task.js';
import { NewerVersion } from './check-manifest-line.js';
import type { ObjectKeys } from './object-keys.js';
import { hasManifest } from './manifest-place.js';
import type { DroppedLine } from '../model/manifest-line.js';
import { emptyManifest, foldManifest, type ReadLine, type ManifestFold } from './manifest.js';

interface DamagedLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string;
  readonly why: string;
}

export class InspectedManifest implements ManifestFold {
  exists = true;
  readonly manifest = emptyManifest();
  /** The text of the valid lines and of the lines of a later version, in file order. */
  readonly sound: string[] = [];
  readonly damaged: DamagedLine[] = [];
  /** Numbers of lines that a later version of cryptodl wrote. */
  readonly newer: number[] = [];
  /** The errors of damaged and newer lines. */
  readonly refused: CryptodlError[] = [];
  readonly dropped: DroppedLine[] = [];
  /** Number of replaced objects per format. */
  readonly revisions: Partial<Record<Format, number>> = {};
  #last = 0;

  onLine({ number, text, content }: ReadLine): void {
    this.#last = number;
    if (content instanceof CryptodlError) {
      this.refused.push(content);
      const why = content.cause;
      if (why instanceof NewerVersion) this.newer.push(number);
      else if (why instanceof Error) this.damaged.push({ number, text, why: why.message });
      if (!(why instanceof NewerVersion)) return;
    } else if (content.kind === 'dropped') this.dropped.push(content);
    else if (content.kind === 'object' && 'replaces' in content) {
      const { format } = content.settings;
      this.revisions[format] = (this.revisions[format] ?? 0) + 1;
    }
    this.sound.push(text);
  }

  /** Another writer may be about to give the file of this line its name. */
  onUndone(text: string): void {
    this.sound.push(text);
  }

  onTail(text: string): void {
    this.damaged.push({ number: this.#last + 1, text, why: 'it is incomplete' });
  }
}

export async function inspectManifest(seriesFolder: string, archive: ObjectKeys): Promise<InspectedManifest> {
  const inspected = await foldManifest(seriesFolder, archive, () => new InspectedManifest());
  inspected.exists = await hasManifest(seriesFolder);
  return inspected;
}
