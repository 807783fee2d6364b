/** Commits a month of bars. */
import type { DuckDb } from '../../convert/duckdb.js';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { readFooter } from '../../convert/parquet-footer.js';
import { copyTo } from '../../convert/statements.js';
import type { LakeParts, Session } from '../../run/session/session.js';
import { seriesFolder, stagingFolder } from '../../lake/layout.js';
import { fileFacts, fileSize } from '../../files/publish.js';
import { moveToQuarantine } from '../../lake/quarantine.js';
import { TOOL_VERSION } from '../../model/version.js';
import { ruleText, type BarMonth } from './bar-months.js';
import type { Amounts } from './built-series.js';
import { linesOf, type BarTarget } from './month-lines.js';
import { commitFiles } from '../../lake/commit-files.js';
import { fileMetadata } from '../../lake/write/file-metadata.js';

/** Commits the bars of the table `made`. Undefined if it has none. Rejects with errors of the disk. */
export async function writeMonth(
  duckdb: DuckDb,
  { clock, lock, manifests, paths, exchange }: Session & LakeParts,
  target: BarTarget,
  month: BarMonth,
): Promise<Pick<Amounts, 'bars' | 'short' | 'bytes'> | undefined> {
  const { folder, held, series, spec } = target;
  const { settings } = target.source;
  const byDay = await duckdb.rows(
    'SELECT day, count_if(is_made) AS rows, count_if(is_short) AS short, min(open_time) FILTER (is_made) AS first, max(open_time) FILTER (is_made) AS last FROM made GROUP BY day',
  );
  const sum = (name: string): number => byDay.reduce((total, row) => total + Number(row[name]), 0);
  if (sum('rows') === 0) return undefined;
  const staged = join(await stagingFolder(paths), `${randomUUID()}.partial`);
  try {
    const rows = '(SELECT * FROM made WHERE is_made ORDER BY open_time)';
    const files = month.from.map(({ path: from, sha256: digest }) => [basename(from), digest]);
    const metadata = fileMetadata(
      { exchange, tool: TOOL_VERSION, series, spec, settings, label: month.label },
      {
        entry: { made: { rule: ruleText(target), files } },
        hasArchive: true,
        hasRest: month.from.some(({ hasRest }) => hasRest),
      },
    );
    await duckdb.run(copyTo({ spec, settings, targetPath: staged }, rows, metadata));
    const { bytes, sha256 } = await fileFacts(staged);
    const { rows: fileRows } = await readFooter(staged);
    const path = join(folder, month.file);
    const nowMs = clock.now();
    if ((await fileSize(path)) !== held.fileBefore(month.file)?.bytes)
      await moveToQuarantine(paths, path, 'damaged: cryptodl bars makes this file again', nowMs);
    const ofFile = { at: new Date(nowMs).toISOString(), fileBytes: bytes, fileSha256: sha256, fileRows };
    const lines = linesOf(target, { month, byDay }, ofFile);
    await lock.confirm();
    // Checked again: a symbolic link may have replaced a folder since the rows were read.
    await paths.folder(seriesFolder(exchange.name, series));
    const publications = [{ staged, target: path }];
    await commitFiles({ paths, manifests }, { seriesFolder: folder, publications, dead: [], lines });
    return { bars: fileRows, short: sum('short'), bytes };
  } finally {
    await rm(staged, { force: true });
  }
}
