/** A file that is about to be replaced may hold rows of which the manifest has lost the lines: they are not lost with it. */
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
 * Puts a file aside that has objects which neither the manifest nor the new file has. Resolves with the lines that remember
 * them, for `repair`.
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
  // A file that says nothing is evidence only where the manifest says nothing either.
  if (unknown === undefined ? existing.inFile.length > 0 : unknown.length === 0) return [];
  const nowMs = context.clock.now();
  const cause = `no manifest line tells of ${unknown?.join(', ') ?? 'this file'}`;
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

/** Objects in the file by its own word; undefined when it says nothing. */
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
