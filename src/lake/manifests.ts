/** The manifests of the series that a run works on: each is read once, and follows what the run appends to it. */
import { appendManifest, applyLine, readManifest } from './manifest.js';
import type { Manifest } from './manifest.js';
import type { ManifestLine } from './manifest-line.js';

/** A line takes about 1 kB of memory. */
const MOST_LINES = 100_000;
/** What a manifest without lines takes, in lines. */
const EMPTY_LINES = 4;
/** So many remembered absences take as much memory as one line. */
const ABSENCES_PER_LINE = 16;

interface Known {
  readonly manifest: Promise<Manifest>;
  /** Memory that it takes, in lines; 0 until it is read. */
  lines: number;
}

/**
 * Valid while no other process writes the lake: for a run that holds the lock, or for one pass of a command that only
 * reads. The manifests used last stay in memory, as many as `mostLines` allows. A run works on a few series at a time,
 * one after the other: a manifest that is let go is read again once per phase (plan, download) at most.
 */
export class Manifests {
  readonly #mostLines: number;
  /** By folder, the one used last at the end. */
  readonly #known = new Map<string, Known>();
  #lines = 0;

  constructor(mostLines = MOST_LINES) {
    this.#mostLines = mostLines;
  }

  /** What is held of a series; it goes on to change with `append`. Rejects like `readManifest`. */
  of(seriesFolder: string): Promise<Manifest> {
    const known = this.#known.get(seriesFolder) ?? this.#read(seriesFolder);
    this.#known.delete(seriesFolder);
    this.#known.set(seriesFolder, known);
    return known.manifest;
  }

  /** Rejects like `appendManifest`. One call at a time for a series. */
  async append(seriesFolder: string, lines: readonly ManifestLine[]): Promise<void> {
    try {
      await appendManifest(seriesFolder, lines);
    } catch (error) {
      // Whether the disk has the lines is for the next reader to find out.
      this.#forget(seriesFolder);
      throw error;
    }
    const known = this.#known.get(seriesFolder);
    if (known === undefined) return;
    const manifest = await known.manifest;
    for (const line of lines) applyLine(manifest, line);
    this.#weigh(seriesFolder, known, manifest);
  }

  #read(seriesFolder: string): Known {
    const known: Known = { manifest: readManifest(seriesFolder), lines: 0 };
    known.manifest.then(
      (manifest) => {
        this.#weigh(seriesFolder, known, manifest);
      },
      () => {
        this.#forget(seriesFolder);
      },
    );
    return known;
  }

  #weigh(seriesFolder: string, known: Known, manifest: Manifest): void {
    // It was let go meanwhile.
    if (this.#known.get(seriesFolder) !== known) return;
    const lines = sizeOf(manifest);
    this.#lines += lines - known.lines;
    known.lines = lines;
    for (const folder of this.#known.keys()) {
      if (this.#lines <= this.#mostLines || this.#known.size === 1) break;
      this.#forget(folder);
    }
  }

  #forget(seriesFolder: string): void {
    this.#lines -= this.#known.get(seriesFolder)?.lines ?? 0;
    this.#known.delete(seriesFolder);
  }
}

function sizeOf({ parquet, csv, zip, absences }: Manifest): number {
  const absent = absences.days().size + absences.months().size;
  return EMPTY_LINES + parquet.size + csv.size + zip.size + absent / ABSENCES_PER_LINE;
}
