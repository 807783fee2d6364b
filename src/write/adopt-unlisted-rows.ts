/** Keeps rows of objects that a file contains but the manifest does not list, when that file is replaced. */
import { join } from 'node:path';
import { moveToQuarantine } from '../lake/quarantine.js';
import type { DroppedLine } from '../lake/manifest-line.js';
import { fileSize } from '../lake/publish.js';
import type { PartitionPlan } from '../model/task.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import { readFooter } from './footer.js';
import type { ExistingFile } from './existing-file.js';
import type { WriterContext } from './writer.js';

/**
 * Moves the existing file to the quarantine if it contains objects that neither the manifest nor the new file has. Resolves
 * with a `dropped` line for each of these objects, so that `repair` fetches them.
 */
export async function adoptUnlistedRows(
  context: WriterContext,
  plan: PartitionPlan,
  existing: ExistingFile,
  { received, files }: { readonly received: readonly ReceivedObject[]; readonly files: readonly string[] },
): Promise<DroppedLine[]> {
  const isDoubtful = existing.inFile.length === 0 || plan.rebuild === 'damaged';
  if (!isDoubtful || !files.includes(existing.file) || (await fileSize(existing.path)) === undefined)
    return [];
  const keys = await provenanceKeys(context, plan, existing);
  const known = new Set(
    [...existing.objects.lines(), ...received.map(({ object }) => object)].map(({ key }) => key),
  );
  const unknown = keys?.filter((key) => !known.has(key));
  // A file without provenance is kept only if the manifest does not list it.
  if (unknown === undefined ? existing.inFile.length > 0 : unknown.length === 0) return [];
  const nowMs = context.clock.now();
  const cause = `no manifest line lists ${unknown?.join(', ') ?? 'this file'}`;
  await moveToQuarantine(context.paths, join(existing.folder, existing.file), cause, nowMs);
  const { settings } = plan;
  const at = new Date(nowMs).toISOString();
  return (unknown ?? []).map((key) => ({
    v: 1,
    kind: 'dropped',
    key,
    format: settings.format,
    at,
    settings,
  }));
}

/** Keys of the objects in the file, from its metadata; undefined when it has none. */
async function provenanceKeys(
  { engine }: WriterContext,
  { settings }: PartitionPlan,
  { path }: ExistingFile,
): Promise<readonly string[] | undefined> {
  if (settings.format !== 'parquet') return undefined;
  const session = await engine.session('small');
  try {
    return (await readFooter(session, path)).provenance?.keys;
  } catch {
    return undefined;
  } finally {
    session.close();
  }
}
