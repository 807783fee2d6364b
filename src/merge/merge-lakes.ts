/** Merges lakes into one, series by series. Sends no request, and changes nothing in the lakes that it reads. */
import { realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { Deadline } from '../download/deadline.js';
import { openLake } from '../download/open-lake.js';
import type { OpenLake } from '../download/open-lake.js';
import {
  FOLDERS,
  lakePaths,
  refuseFile,
  refuseLinkedFolders,
  runFolder,
  seriesFolder,
} from '../lake/layout.js';
import type { LakePaths } from '../lake/layout.js';
import { openBackedFolders, releaseBacked } from '../lake/backing.js';
import { refuseIfLocked } from '../lake/lock.js';
import { Manifests } from '../lake/manifests.js';
import { writeNotice } from '../lake/notice.js';
import { listEntries, listLeftovers } from '../lake/walk-lake.js';
import { CryptodlError, errnoOf, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { StageTimes } from '../report/stage-times.js';
import { heldSeries } from '../select/held-series.js';
import { isMirror } from '../text/mirror-roots.js';
import { absolutePath, shellWord, shownPath } from '../text/printable.js';
import { chooseFiles } from './choose-files.js';
import type { Choice, Refusal } from './choose-files.js';
import { readSeriesState } from './series-state.js';
import { takeFiles } from './take-files.js';

/** The result for one series of one lake. */
export interface MergedSeries extends Series {
  /** `merged`, or with --dry-run what would be merged; `skipped`: the target has it already. */
  readonly outcome: 'merged' | 'skipped' | 'failed';
  /** Why it failed. */
  readonly reason?: Refusal['reason'];
  readonly text?: string;
  /** The lake that was read. */
  readonly lake: string;
  readonly files: number;
  readonly bytes: number;
}

export interface MergeSummary {
  readonly merged: number;
  readonly skipped: number;
  /** Series that were not merged, and folders that look like series but could not be read. */
  readonly failed: number;
  readonly files: number;
  readonly bytes: number;
  readonly exitCode: ExitCode;
}

/**
 * Yields each series of each lake, in the order of the lakes. Rejects with usage errors for paths that are no lakes, with `locked` while a
 * run writes to one of the lakes, and with the error of the target's disk.
 */
export async function* mergeLakes(
  sources: readonly string[],
  request: VerbRequest,
): AsyncGenerator<MergedSeries, MergeSummary> {
  const { clock, resolved, source: venue, surroundings } = request;
  const { options } = resolved;
  const target = lakePaths(absolutePath(options.out, surroundings.home));
  refuseFile(target.root);
  const lakes = sources.map((path) => lakePaths(absolutePath(path, surroundings.home)));
  for (const lake of lakes) await refuseBadSource(lake, venue.name);
  await refuseSame(lakes, target);
  for (const { internal } of lakes) await refuseIfLocked(internal, clock);
  const merge = new Merge(request, target);
  const opened = options.dryRun ? undefined : await merge.open();
  try {
    for (const lake of lakes) yield* merge.lake(lake, opened);
    if (opened !== undefined && merge.files > 0 && venue.terms !== undefined)
      await writeNotice(target, venue.terms.notice);
    return merge.summary();
  } finally {
    await opened?.lock.release();
  }
}

class Merge {
  readonly #request: VerbRequest;
  readonly #target: LakePaths;
  readonly #stop = new AbortController();
  readonly #manifests: Manifests;
  readonly #counts = { merged: 0, skipped: 0, failed: 0 };
  files = 0;
  #bytes = 0;

  constructor(request: VerbRequest, target: LakePaths) {
    this.#request = request;
    this.#target = target;
    this.#manifests = new Manifests(request.source.archive);
  }

  open(): Promise<OpenLake> {
    const { clock, observer, resolved, source, surroundings } = this.#request;
    const stop = this.#stop;
    const session = {
      paths: this.#target,
      runFolder: runFolder(resolved.options, this.#target, surroundings.home),
      clock,
      observer,
      options: resolved.options,
      venue: source,
      stop,
      times: new StageTimes(clock),
      deadline: new Deadline({ clock, maxDurationMs: undefined, stop }),
    };
    return openLake(session, 'cryptodl merge');
  }

  async *lake(lake: LakePaths, opened: OpenLake | undefined): AsyncGenerator<MergedSeries> {
    const { source: venue, observer } = this.#request;
    const warn = (message: string): void => {
      this.#counts.failed += 1;
      observer.warn(message);
    };
    for await (const series of heldSeries(lake.root, venue, warn)) {
      this.#signal.throwIfAborted();
      const result = await this.#series(lake, series, opened);
      this.#counts[result.outcome] += 1;
      this.files += result.files;
      this.#bytes += result.bytes;
      yield result;
    }
  }

  get #signal(): AbortSignal {
    return AbortSignal.any([this.#request.signal, this.#stop.signal]);
  }

  async #series(lake: LakePaths, series: Series, opened: OpenLake | undefined): Promise<MergedSeries> {
    const of = { ...series, lake: shownPath(lake.root), files: 0, bytes: 0 };
    const choice = await this.#merge(lake, series, opened);
    if ('reason' in choice) return { ...of, outcome: 'failed', ...choice };
    const bytes = choice.files.reduce((sum, { committed }) => sum + committed.fileBytes, 0);
    const isEmpty = choice.files.length + choice.others.length === 0;
    return { ...of, outcome: isEmpty ? 'skipped' : 'merged', files: choice.files.length, bytes };
  }

  async #merge(from: LakePaths, series: Series, opened: OpenLake | undefined): Promise<Choice | Refusal> {
    const { source: venue, clock } = this.#request;
    const folder = seriesFolder(venue.name, series);
    try {
      const pair = {
        series,
        source: await readSeriesState(join(from.root, folder), venue.archive),
        target: await readSeriesState(join(this.#target.root, folder), venue.archive),
      };
      const choice = chooseFiles(pair.source, pair.target);
      if (opened === undefined || 'reason' in choice || choice.files.length + choice.others.length === 0)
        return choice;
      const { lock } = opened;
      const context = {
        venue,
        from,
        to: this.#target,
        manifests: this.#manifests,
        lock,
        signal: this.#signal,
      };
      const refusal = await takeFiles(context, pair, choice);
      await releaseBacked(join(from.root, folder), join(from.root, venue.archive.topFolder));
      // A run that writes to the source changes files and manifests.
      if (refusal !== undefined) await refuseIfLocked(from.internal, clock);
      return refusal ?? choice;
    } catch (error) {
      if (!(error instanceof CryptodlError) || error.code !== 'manifest-damaged') throw error;
      return { reason: 'damaged', text: error.message };
    }
  }

  summary(): MergeSummary {
    const { failed } = this.#counts;
    return { ...this.#counts, files: this.files, bytes: this.#bytes, exitCode: failed > 0 ? 4 : 0 };
  }
}

/** Throws a usage error for a path that is not a lake, and for a lake whose last commit is not finished. */
async function refuseBadSource(lake: LakePaths, venue: string): Promise<void> {
  const { root } = lake;
  const shown = shownPath(root);
  try {
    if (!(await stat(root)).isDirectory())
      throw usage(`merge: ${shown} is a file`, 'name the folder of a lake');
  } catch (error) {
    if (error instanceof CryptodlError) throw error;
    throw usage(`merge: ${shown} cannot be read (${errnoOf(error)})`, 'name the folder of a lake');
  }
  if (!(isMirror(root) ? await hasObjects(root, venue) : await hasFolders(root, venue)))
    throw usage(`merge: ${shown} is not a lake`, 'name the folder that was --out of a download');
  await refuseLinkedFolders(lake);
  const [journal] = (await listLeftovers(lake)).filter((path) => path.endsWith('.json'));
  if (journal === undefined) return;
  throw usage(
    `merge: a run was killed during a commit in ${shown}`,
    `to finish the commit: cryptodl verify --fix --out ${shellWord(shown)}`,
  );
}

async function hasFolders(root: string, venue: string): Promise<boolean> {
  const { folders, links } = await listEntries(root);
  return [...folders, ...links].some((name) => [venue, FOLDERS.manifests, FOLDERS.internal].includes(name));
}

/** The mirror of a bucket has the folders of a lake from the beginning. A run without any data leaves its record. */
async function hasObjects(root: string, venue: string): Promise<boolean> {
  const folders = [venue, `${FOLDERS.manifests}/${venue}`, `${FOLDERS.internal}/runs`];
  for (const folder of folders.map((name) => join(root, name))) {
    await openBackedFolders(folder);
    if (Object.values(await listEntries(folder)).some((names) => names.length > 0)) return true;
  }
  return false;
}

/** Throws a usage error for a lake that is named twice, and for a lake within another one. */
async function refuseSame(lakes: readonly LakePaths[], target: LakePaths): Promise<void> {
  const known: { readonly path: string; readonly shown: string }[] = [];
  for (const { root } of [target, ...lakes]) {
    const shown = shownPath(root);
    const path = isMirror(root) ? shown : await realpath(root).catch(() => root);
    for (const other of known) {
      if (other.path === path)
        throw usage(
          other === known[0] ? `merge: ${shown} is also --out` : `merge: ${shown} is named twice`,
          'name each lake once, and another folder with --out',
        );
      const [outer, inner] = isWithin(path, other.path) ? [other.shown, shown] : [shown, other.shown];
      if (isWithin(path, other.path) || isWithin(other.path, path))
        throw usage(`merge: ${inner} is within ${outer}`, 'name lakes beside each other');
    }
    known.push({ path, shown });
  }
}

function isWithin(path: string, folder: string): boolean {
  const inner = relative(folder, path);
  return inner !== '' && !inner.startsWith(`..${sep}`) && inner !== '..' && !inner.startsWith(sep);
}
