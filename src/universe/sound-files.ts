/** Compares the files that a universe reads with their committed digests, and chooses others in place of those that cannot be read. */
import { bringIn } from '../lake/backing.js';
import { CryptodlError } from '../model/errors.js';
import type { FileDigests, FileFault } from '../query/file-digests.js';
import { readSeriesFiles } from '../query/lake-tables.js';
import type { LakeFile } from '../query/lake-tables.js';
import type { Source } from '../source/source.js';
import { chosenFiles } from './choose-files.js';
import type { FoundFiles, SeriesFiles, UnreadableFile, UniverseFile } from './choose-files.js';

/** Files that have the committed content, and cannot be read. */
export class UnreadableFiles extends CryptodlError {
  readonly files: readonly UnreadableFile[];

  constructor(files: readonly UnreadableFile[], cause: unknown) {
    super('disk', 'files of the lake cannot be read', { cause });
    this.files = files;
  }
}

interface Lake {
  /** Absolute. */
  readonly root: string;
  readonly venue: Source;
  readonly digests: FileDigests;
}

/** The found files of a lake, without those that turned out to be damaged. */
export class SoundFiles {
  readonly found: FoundFiles;
  readonly #lake: Lake;
  /** Series whose manifest was read again. */
  readonly #readAgain = new Set<SeriesFiles['series']>();
  readonly #leftOut = new Set<string>();

  constructor(found: FoundFiles, lake: Lake) {
    this.found = found;
    this.#lake = lake;
  }

  /**
   * The files that `limit` takes of all chosen ones. A damaged file makes no file of a shorter interval superfluous, so the choice is made
   * again without it. Rejects with the errors of `limit`, and when interrupted.
   */
  async choose(limit: (files: readonly UniverseFile[]) => UniverseFile[]): Promise<UniverseFile[]> {
    for (;;) {
      const files = limit(chosenFiles(this.found));
      // The bytes of a lake in a bucket.
      await bringIn(files.map(({ path }) => path));
      const faults = await this.#lake.digests.faultsOf(files);
      if (faults.length === 0) return files;
      for (const symbol of new Set(faults.map(({ file }) => file.symbol)))
        await this.#leaveOut(
          symbol,
          faults.filter(({ file }) => file.symbol === symbol),
        );
    }
  }

  /** Leaves files out that have the committed content. */
  leaveOut(files: readonly UnreadableFile[]): void {
    const reasons = new Map(files.map(({ path, reason }) => [path, reason]));
    for (const [symbol, series] of this.found.bySymbol) {
      const faults = series
        .flatMap((one) => one.files)
        .flatMap((file) => ({ file, reason: reasons.get(file.path) }))
        .filter(({ reason }) => reason !== undefined);
      if (faults.length > 0) this.#drop(symbol, series, faults);
    }
  }

  async #leaveOut(symbol: string, faults: readonly FileFault<UniverseFile>[]): Promise<void> {
    const of: SeriesFiles[] = [];
    const stay: FileFault<LakeFile>[] = [];
    for (const one of this.found.bySymbol.get(symbol) ?? []) {
      const paths = new Set(one.files.map(({ path }) => path));
      const own = faults.filter(({ file }) => paths.has(file.path));
      const { files, isFault } = await this.#current(one, own);
      of.push({ series: one.series, files });
      stay.push(...own.filter(isFault));
    }
    this.#drop(symbol, of, stay);
  }

  /** A run may have replaced files since the manifest was read. */
  async #current(
    { series, files }: SeriesFiles,
    faults: readonly FileFault<LakeFile>[],
  ): Promise<{ files: readonly LakeFile[]; isFault: (fault: FileFault<LakeFile>) => boolean }> {
    if (faults.length === 0 || this.#readAgain.has(series)) return { files, isFault: () => true };
    this.#readAgain.add(series);
    const again = await readSeriesFiles(this.#lake.root, this.#lake.venue, series).catch((error: unknown) => {
      if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
      return undefined;
    });
    if (again === undefined) return { files, isFault: () => true };
    const committed = new Set(again.files.map(nameOf));
    return {
      files: again.files,
      isFault: ({ file }) => committed.has(nameOf(file)) || again.unsound.includes(file.path),
    };
  }

  #drop(symbol: string, series: readonly SeriesFiles[], faults: readonly FileFault<LakeFile>[]): void {
    const { bySymbol, leftOut, unread, unreadable } = this.found;
    for (const { file, reason } of faults) {
      this.#leftOut.add(nameOf(file));
      unread.add(symbol);
      if (reason === undefined) leftOut.unsound.push(file.path);
      else unreadable.push({ path: file.path, reason });
    }
    const isSound = (file: LakeFile): boolean => !this.#leftOut.has(nameOf(file));
    bySymbol.set(
      symbol,
      series.map((one) => ({ ...one, files: one.files.filter(isSound) })),
    );
  }
}

function nameOf({ path, sha256 }: LakeFile): string {
  return `${path}\n${sha256}`;
}
