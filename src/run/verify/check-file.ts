/** Compares one file of a series with the manifest lines that name it. */
import { basename, dirname } from 'node:path';
import type { Engine } from '../../convert/duckdb.js';
import { inspectRows } from '../../convert/inspect-rows.js';
import type { Exchange } from '../../exchange/exchange.js';
import { findDataset } from '../../exchange/exchange-spec.js';
import { entryAt, firstSymlink, isIrregular } from '../../files/path-checks.js';
import { fileFacts, fileSize, type FileFacts } from '../../files/publish.js';
import type { HeldObjects } from '../../lake/held-objects.js';
import { errnoOf } from '../../model/errors.js';
import type { ObjectLine } from '../../model/manifest-line.js';
import type { Series } from '../../model/task.js';
import { NOT_REGULAR, type LakeFinding } from './lake-finding.js';

/** Errno values with which the file system refuses to read a file. */
export const UNREADABLE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EIO']);

type FileCheck = Pick<LakeFinding, 'kind' | 'text'>;

/**
 * Compares a file with its last commit: size, digest, and the row counts of its manifest lines; with an engine also the rows. Of a zip,
 * only size and digest. `lines` are the manifest lines of the objects in the file. Resolves with undefined when nothing differs.
 */
export async function checkFile(
  { engine, exchange }: { readonly engine: Engine | undefined; readonly exchange: Exchange },
  series: Series,
  path: string,
  lines: readonly ObjectLine[],
  held: HeldObjects,
): Promise<FileCheck | undefined> {
  const committed = held.lastOfFile(lines[0]?.file ?? '');
  if (committed === undefined) return undefined;
  try {
    const size = await fileSize(path);
    if (size === undefined) return await missing(path);
    const text = differenceOf(await fileFacts(path), committed) ?? missingLine(committed, lines);
    if (text !== undefined) return { kind: 'damaged', text };
    const { settings } = committed;
    const spec = findDataset(exchange, series.market, series.dataset);
    if (engine === undefined || spec === undefined || settings.format === 'zip') return undefined;
    const rows = await engine.connect();
    try {
      const { interval } = series;
      const wrong = await inspectRows(rows, { path, spec, settings, interval, lines });
      return wrong.length === 0 ? undefined : { kind: 'damaged', text: wrong.join('; ') };
    } finally {
      rows.close();
    }
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT') return { kind: 'missing', text: 'the file does not exist' };
    if (!UNREADABLE.has(errno)) throw error;
    return { kind: 'unreadable', text: `the file cannot be read (${errno})` };
  }
}

async function missing(path: string): Promise<FileCheck> {
  const text = 'a symbolic link stands in place of the file; links are not followed';
  if (firstSymlink(dirname(path), basename(path)) !== undefined) return { kind: 'missing', text };
  // Only the user can move it away: repair writes no file in its place.
  if (isIrregular(await entryAt(path))) return { kind: 'unreadable', text: `${NOT_REGULAR}: move it away` };
  return { kind: 'missing', text: 'the file does not exist' };
}

function differenceOf(facts: FileFacts, committed: ObjectLine): string | undefined {
  if (facts.bytes !== committed.fileBytes)
    return `the file has ${facts.bytes} bytes, the committed file had ${committed.fileBytes}`;
  if (facts.sha256 !== committed.fileSha256)
    return `the SHA-256 of the file is ${facts.sha256.slice(0, 12)}…, that of the committed file was ${committed.fileSha256.slice(0, 12)}…`;
  return undefined;
}

function missingLine({ fileRows }: ObjectLine, lines: readonly ObjectLine[]): string | undefined {
  const rows = lines.reduce((total, line) => total + (line.rows ?? 0), 0);
  return fileRows === undefined || rows === fileRows
    ? undefined
    : `the file has ${fileRows} rows, its manifest lines name ${rows}: a manifest line is missing`;
}
