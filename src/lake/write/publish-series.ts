/** Publishes the writes of a series of a lake in a bucket. A write that meets changes of another writer fails for another try. */
import { join } from 'node:path';
import { backingOf } from '../../files/backing.js';
import { toCryptodlError } from '../../model/errors.js';
import type { PartitionPlan } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { seriesFolder } from '../layout.js';
import { failAll, type WriteResult, type WriterContext } from './writer.js';

/** Resolves when the lake in a bucket has the objects too. They fail with `lake-conflict` if another writer has changed the series. */
export async function publishedOrFailed(
  context: WriterContext,
  plan: PartitionPlan,
  received: readonly ReceivedObject[],
  write: () => Promise<WriteResult>,
): Promise<WriteResult> {
  const folder = folderOf(context, plan);
  const backing = backingOf(folder);
  try {
    const result = await (backing?.using(folder, write) ?? write());
    await context.timed('commit', { plan }, async () => backing?.published(folder));
    return result;
  } catch (error) {
    const known = toCryptodlError(error);
    if (known.code !== 'lake-conflict') throw error;
    await backing?.reopenSeries(folder);
    return failAll(received, known);
  }
}

export async function reopenSeries(context: WriterContext, plan: PartitionPlan): Promise<void> {
  const folder = folderOf(context, plan);
  await backingOf(folder)?.reopenSeries(folder);
}

const folderOf = ({ paths, exchange }: WriterContext, { series }: PartitionPlan): string =>
  join(paths.root, seriesFolder(exchange.name, series));
