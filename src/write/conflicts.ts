/** Changes of other writers of a lake in a bucket: the plan of a file is made again with the new state, and a write fails for another try. */
import { join } from 'node:path';
import { seriesFolder } from '../lake/layout.js';
import { toCryptodlError } from '../model/errors.js';
import type { PartitionPlan } from '../model/task.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import { emptyResult, failAll } from './partition-guards.js';
import type { WriteResult, WriterContext } from './writer.js';

/** Attempts to plan a file that other writers change meanwhile. Each failed attempt is progress of another writer. */
const MOST_ATTEMPTS = 20;

/** Calls `prepare` again with the new state of the series when another writer has changed it. */
export async function preparedAgain(
  context: WriterContext,
  plan: PartitionPlan,
  prepare: () => Promise<PartitionPlan>,
): Promise<PartitionPlan> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await prepare();
    } catch (error) {
      if (toCryptodlError(error).code !== 'lake-conflict' || attempt === MOST_ATTEMPTS) throw error;
      await context.manifests.reopen(folderOf(context, plan));
    }
  }
}

/** Resolves when the lake in a bucket has the objects too. They fail with `lake-conflict` if another writer has changed the series. */
export async function publishedOrFailed(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  write: () => Promise<WriteResult>,
): Promise<WriteResult> {
  const folder = folderOf(context, plan);
  try {
    const result = await write();
    await context.timed('commit', { plan }, () => context.manifests.published(folder));
    return result;
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.code !== 'lake-conflict') throw error;
    await context.manifests.reopen(folder);
    return emptyResult(failAll(received, known).failed);
  }
}

function folderOf({ paths, venue }: WriterContext, { series }: PartitionPlan): string {
  return join(paths.root, seriesFolder(venue.name, series));
}
