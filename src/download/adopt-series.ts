/** Adoption of Parquet files before a run plans their series: a copied folder without its manifest is not downloaded again. */
import { join } from 'node:path';
import type { Engine } from '../convert/duckdb.js';
import { HeldObjects } from '../lake/held-objects.js';
import { applyLine } from '../lake/manifest.js';
import type { ObjectLine } from '../lake/manifest-line.js';
import { isPartitionFile } from '../lake/path-checks.js';
import { listEntries } from '../lake/walk-lake.js';
import type { Series } from '../model/task.js';
import { errnoOf } from '../model/errors.js';
import { countText } from '../model/units.js';
import { UNREADABLE } from '../verify/check-file.js';
import type { LakeSession, RunSession } from './session.js';

type AdoptionSession = Pick<RunSession, 'nowMs' | 'stop' | 'venue'> &
  Pick<LakeSession, 'lock' | 'manifests' | 'runFolder'>;

/** The caller must close it. */
export class Adoption {
  readonly #session: AdoptionSession;
  /** By folder: a plan may ask for a series twice. Only series with files. */
  readonly #adopted = new Map<string, Promise<boolean>>();
  #engine: Promise<Engine> | undefined;
  #series = 0;
  #files = 0;
  #objects = 0;

  constructor(session: AdoptionSession) {
    this.#session = session;
  }

  /**
   * Adds lines to the manifest for the Parquet files whose footers and rows prove them. Resolves with true if there are any. Without
   * the lock (a dry run), only the manifest in memory gets the lines.
   */
  async adopt(series: Series, folder: string): Promise<boolean> {
    const { files } = await listEntries(folder);
    const found = files.filter((name) => isPartitionFile(name) && name.endsWith('.parquet'));
    if (found.length === 0) return false;
    const adopted = this.#adopted.get(folder) ?? this.#adoptFiles(series, folder, found);
    this.#adopted.set(folder, adopted);
    return adopted;
  }

  async #adoptFiles(series: Series, folder: string, files: readonly string[]): Promise<boolean> {
    const { venue, nowMs, lock, manifests } = this.#session;
    const { provenLines } = await import('../verify/adopt-file.js');
    this.#engine ??= this.#start();
    const engine = await this.#engine;
    const held = new HeldObjects();
    const lines: ObjectLine[] = [];
    let adopted = 0;
    for (const file of files) {
      const unlisted = { series, folder, file, siblings: files, held };
      const proven = await provenLines(engine, { venue, nowMs }, unlisted).catch(ifReadable);
      if (proven === undefined) continue;
      proven.forEach((line) => {
        held.add(line);
      });
      lines.push(...proven);
      adopted += 1;
    }
    if (lines.length === 0) return false;
    await lock?.confirm();
    // In one write: after a crash in between, a run would find a manifest that has Parquet files, and would adopt no other file.
    if (lock !== undefined) await manifests.append(folder, lines);
    else {
      const manifest = await manifests.of(folder);
      for (const line of lines) applyLine(manifest, line);
    }
    this.#series += 1;
    this.#files += adopted;
    this.#objects += lines.length;
    return true;
  }

  async #start(): Promise<Engine> {
    const { runFolder, stop } = this.#session;
    const { createEngine } = await import('../convert/duckdb.js');
    return createEngine({ tempFolder: join(runFolder, 'adoption'), signal: stop.signal });
  }

  /** A line for people; undefined if there was nothing to adopt. */
  text(): string | undefined {
    if (this.#files === 0) return undefined;
    const verb = this.#session.lock === undefined ? 'the run would adopt' : 'adopted';
    const files = `${countText(this.#files, 'Parquet file')} with ${countText(this.#objects, 'object')}`;
    return `${verb} ${files} in ${this.#series} series without a manifest: footers and rows prove the objects`;
  }

  close(): void {
    this.#engine?.then(
      (engine) => {
        engine.close();
      },
      () => undefined,
    );
  }
}

/** A file that the file system refuses to read stays, like one that proves nothing: `verify` lists it. */
function ifReadable(error: unknown): undefined {
  if (!UNREADABLE.has(errnoOf(error))) throw error;
}
