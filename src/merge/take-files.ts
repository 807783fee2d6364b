/** Copies the chosen files of a series to the target: staged, checked against their manifest lines, then published. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commitWithJournal } from '../lake/commit-journal.js';
import { seriesFolder } from '../lake/layout.js';
import type { Lock } from '../lake/lock.js';
import type { Manifests } from '../lake/manifests.js';
import { publishAll } from '../lake/publish.js';
import type { Choice, Refusal } from './choose-files.js';
import type { SeriesPair } from './series-state.js';
import { refuseUnknownFile, stagedPath, stageFile } from './stage-file.js';
import type { LakePair, StagedFile } from './stage-file.js';

export interface TakeContext extends LakePair {
  readonly manifests: Pick<Manifests, 'append' | 'published'>;
  readonly lock: Pick<Lock, 'confirm'>;
  readonly signal: AbortSignal;
}

/** Files that are copied at the same time. */
const AT_ONCE = 8;
/** Files of one commit. All of them are open while they are synced. */
const MOST_IN_COMMIT = 64;

/**
 * Copies and checks all files before it publishes the first one. Resolves with a refusal, and changes nothing, if a file of either lake is
 * not the one that its manifest describes. Rejects with the error of the disk; the next run finishes the commits and clears the
 * staged files.
 */
export async function takeFiles(
  context: TakeContext,
  pair: SeriesPair,
  choice: Choice,
): Promise<Refusal | undefined> {
  const folder = await context.to.folder(seriesFolder(context.venue.name, pair.series));
  for (const { file, committed } of choice.dead) {
    const refusal = await refuseUnknownFile(join(folder, file), [committed]);
    if (refusal !== undefined) return refusal;
  }
  const staged = await stageAll(context, pair, choice);
  if ('reason' in staged) return staged;
  await publishPartitions(context, folder, staged, choice);
  await publishZips(context, folder, staged);
  if (choice.others.length > 0) {
    await context.lock.confirm();
    await context.manifests.append(folder, choice.others);
  }
  await context.manifests.published(folder);
  return undefined;
}

async function stageAll(
  context: TakeContext,
  pair: SeriesPair,
  { files }: Choice,
): Promise<StagedFile[] | Refusal> {
  const staged: StagedFile[] = [];
  let refusal: Refusal | undefined;
  try {
    for (let at = 0; at < files.length && refusal === undefined; at += AT_ONCE) {
      context.signal.throwIfAborted();
      const some = files.slice(at, at + AT_ONCE).map((file) => stageFile(context, pair, file));
      const ended = await Promise.allSettled(some);
      const values = ended.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      staged.push(...values.flatMap((one) => ('reason' in one ? [] : one)));
      refusal = values.find((one) => 'reason' in one);
      const failed = ended.find((one) => one.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    }
  } catch (error) {
    await removeAll(staged);
    throw error;
  }
  if (refusal === undefined) return staged;
  await removeAll(staged);
  return refusal;
}

async function removeAll(files: readonly StagedFile[]): Promise<void> {
  for (const { staged } of files) await rm(staged, { force: true });
}

/** With a journal, so that a killed merge leaves no file without its manifest lines. */
async function publishPartitions(
  context: TakeContext,
  folder: string,
  staged: readonly StagedFile[],
  { dead }: Choice,
): Promise<void> {
  const partitions = staged.filter(({ chosen }) => chosen.format !== 'zip');
  // Superseded files and the files with their rows are one commit.
  const most = dead.length > 0 ? partitions.length : MOST_IN_COMMIT;
  for (let at = 0; at < partitions.length; at += most) {
    const some = partitions.slice(at, at + most);
    await context.lock.confirm();
    await commitWithJournal(
      { paths: context.to, manifests: context.manifests },
      {
        seriesFolder: folder,
        publications: some.map(({ staged: from, target }) => ({ staged: from, target })),
        dead: dead.map(({ file }) => join(folder, file)),
        lines: some.flatMap(({ chosen }) => chosen.lines),
      },
    );
  }
}

/** Each zip comes after its sidecar, so that a zip never appears without its digest. A killed merge leaves zips that the next one takes. */
async function publishZips(
  context: TakeContext,
  folder: string,
  staged: readonly StagedFile[],
): Promise<void> {
  const { sidecar } = context.venue.archive;
  const zips = staged.filter(({ chosen }) => chosen.format === 'zip');
  // The folder shows that the lake has the series, even if its manifest is lost.
  if (zips.length > 0) await mkdir(folder, { recursive: true });
  for (let at = 0; at < zips.length; at += MOST_IN_COMMIT) {
    const some = zips.slice(at, at + MOST_IN_COMMIT);
    await context.lock.confirm();
    const publications = [];
    for (const { staged: from, target, chosen } of some) {
      const { key, sha256, verified } = chosen.committed;
      if (sidecar !== undefined) {
        const path = stagedPath(context.to);
        // The sidecar of an earlier revision does not match this one.
        if (verified !== 'sidecar') await rm(target + sidecar.suffix, { force: true });
        else {
          await writeFile(path, sidecar.textOf(key, sha256));
          publications.push({ staged: path, target: target + sidecar.suffix });
        }
      }
      publications.push({ staged: from, target });
    }
    await publishAll(publications);
    await context.manifests.append(
      folder,
      some.flatMap(({ chosen }) => chosen.lines),
    );
  }
}
