/** Writes the files of an export, and prints what became of them. */
import { writeData } from '../../terminal/write-data.js';
import type { ExitCode } from '../../model/exit-code.js';
import { listText } from '../../model/units.js';
import { printLines, tabbed } from '../../text/printable.js';
import { exportLake } from './export-lake.js';
import type { Export, ExportCommand } from './select-export.js';
import { FAILURES, Tally, closing } from './export-tally.js';
import { progressPrinter } from '../../run/verb/items.js';

export async function writeFiles(
  { io, resolved }: ExportCommand,
  given: Export,
  target: string,
): Promise<ExitCode> {
  const { json, quiet, dryRun, requireComplete } = resolved.options;
  const tally = new Tally();
  const progress = progressPrinter(resolved.options, io);
  const startedAt = io.clock.monotonic();
  for await (const item of exportLake(given, target)) {
    tally.add(item);
    progress(() => tally.text());
    if (json)
      await writeData(io, [
        'file' in item
          ? { event: 'file', ...item }
          : { event: 'left-out', ...item.series, reason: item.reason },
      ]);
    else if ('file' in item && (item.outcome === 'planned' || FAILURES.includes(item.outcome))) {
      const { outcome, file, text } = item;
      await writeData(io, [tabbed([outcome === 'planned' ? 'write' : outcome, file, text ?? []].flat())]);
    }
  }
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  const exitCode = tally.exitCode(requireComplete);
  const { files, rows, bytes, refused } = tally;
  const summary = { dryRun, files, rows, bytes, leftOut: refused.length, elapsedMs, exitCode };
  if (json) await writeData(io, [{ event: 'summary', ...summary }]);
  printLines(io.stderr, [
    ...tally.leftOutLines(),
    ...(quiet || tally.empty.length === 0 ? [] : [`without rows: ${listText(tally.empty, 3)}`]),
    ...(quiet && exitCode === 0 ? [] : closing(given, tally, target, dryRun ? undefined : elapsedMs)),
  ]);
  return exitCode;
}
