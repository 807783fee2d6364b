/** Writes the files of a program group by group, several at once. */
import { join } from 'node:path';
import { verbEngine } from '../../convert/duckdb.js';
import { backingOf } from '../../files/backing.js';
import { makeFolder } from '../../files/disk.js';
import { checkedFolder } from '../../files/path-checks.js';
import { refuseFile, seriesFolder } from '../../lake/layout.js';
import { acquireLock, type Lock, type LockRequest } from '../../lake/lock.js';
import { CryptodlError, usage } from '../../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../../files/machine.js';
import { mapOrdered } from '../../model/in-order.js';
import { refuseInLake } from '../../plan/select/held-series.js';
import { reasonOf } from '../../text/path-faults.js';
import { absolutePath, shownPath } from '../../text/printable.js';
import type { Refused } from './export-file.js';
import { OWN_FOLDER } from './output.js';
import { exportGroups, type ExportSelection } from './select-export.js';
import { exportFile, type ExportedFile, type ExportContext } from './write-file.js';

/** Sessions of DuckDB are as many as cores. So many files wait for them or for the disk, so that a long one does not stop the others. */
const FILES_PER_CORE = 4;

/**
 * Yields each file after it is written, and the series that are left out. `target`: its absolute path. Rejects with `locked` while another export
 * writes to the target, and with errors of disk, memory or interruption.
 */
export async function* exportLake(
  selection: ExportSelection,
  target: string,
): AsyncGenerator<ExportedFile | Refused, void> {
  const { request, root, stop } = selection;
  const { exchange, clock, resolved, signal } = request;
  const onLost = (error: CryptodlError): void => stop.abort(error);
  const lock = resolved.options.dryRun ? undefined : await lockTarget(target, { clock, onLost });
  const database = verbEngine('export', request, memoryLimitBytes() / 4);
  const context: ExportContext = { ...selection, target, database, lock };
  let running: Promise<unknown>[] = [];
  try {
    for await (const { series, items } of exportGroups(selection)) {
      running = [];
      yield* mapOrdered(
        items,
        withinOpenFiles(cores()) * FILES_PER_CORE,
        (item): Promise<ExportedFile | Refused> => {
          if ('reason' in item) return Promise.resolve(item);
          const exported = exportFile(item, context);
          running.push(exported);
          return exported;
        },
      );
      backingOf(root)?.release(series.map((each) => join(root, seriesFolder(exchange.name, each))));
    }
  } catch (error) {
    // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
    signal.throwIfAborted();
    throw error;
  } finally {
    database.interrupt();
    await Promise.allSettled(running);
    await database.end();
    await lock?.release();
  }
}

/** The absolute path of the target. Throws usage errors for a missing --target, for a file, and for a folder in the lake. */
export async function targetFolder({ request, program }: ExportSelection): Promise<string> {
  const { name } = program;
  const { target } = request.resolved.options;
  if (target === undefined)
    throw usage(
      `export ${name} needs --target, the folder for its files; --out is the lake`,
      `for example --target ${name === 'freqtrade' ? 'user_data/data/binance' : name}`,
    );
  const path = absolutePath(target, request.surroundings.home);
  refuseFile(path, '--target');
  await refuseInLake(path, request.exchange.name);
  return path;
}

/** Makes the target, and locks it. Rejects with `locked`, with a usage error for a place that cannot be written, and with `disk` for a symbolic link. */
async function lockTarget(target: string, request: Omit<LockRequest, 'command'>): Promise<Lock> {
  try {
    await makeFolder(target);
    const folder = await checkedFolder(target, OWN_FOLDER);
    return await acquireLock(folder, { command: 'cryptodl export', ...request });
  } catch (error) {
    if (error instanceof CryptodlError) throw error;
    throw usage(
      `--target ${shownPath(target)} cannot be written (${reasonOf(error)})`,
      'choose another --target',
    );
  }
}
