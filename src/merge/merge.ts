/** `cryptodl merge`: prints series that could not be merged on stdout, and the summary on stderr. */
import { endLookUp, forEachItem, progressPrinter, requestOf } from '../cli/look-up.js';
import type { LookUp } from '../cli/look-up.js';
import { writeData } from '../cli/write-data.js';
import type { ExitCode } from '../model/exit-code.js';
import { watchSignals } from '../model/io.js';
import { seriesName } from '../model/task.js';
import { bytesText, countText, durationText, numberText } from '../model/units.js';
import { absolutePath, printLines, shellWord, shownPath, tabbed } from '../text/printable.js';
import { mergeLakes } from './merge-lakes.js';
import type { MergedSeries, MergeSummary } from './merge-lakes.js';

/** Resolves with 0 if the target has all series, 4 if some could not be merged, 6 while a run writes to one of the lakes. */
export async function merge(sources: readonly string[], run: LookUp): Promise<ExitCode> {
  const signals = watchSignals(run.io);
  try {
    return await mergeAndPrint(sources, run, signals.signal);
  } catch (error) {
    return await endLookUp(error, run, signals);
  } finally {
    signals.release();
  }
}

async function mergeAndPrint(
  sources: readonly string[],
  run: LookUp,
  signal: AbortSignal,
): Promise<ExitCode> {
  const { io, resolved } = run;
  const { options } = resolved;
  const request = requestOf(run, signal);
  const printProgress = progressPrinter(options, io);
  const startedAt = io.clock.monotonic();
  let seen = 0;
  let bytes = 0;
  const summary = await forEachItem(mergeLakes(sources, request), (series) => {
    seen += 1;
    bytes += series.bytes;
    printProgress(() => `${numberText(seen)} series, ${bytesText(bytes)}`);
    const isShown =
      options.json || series.outcome === 'failed' || (options.dryRun && series.outcome === 'merged');
    const line = options.json ? { event: 'series', ...series } : lineOf(series);
    return isShown ? writeData(io, [line]) : Promise.resolve(true);
  });
  if (summary === undefined) return 0;
  const elapsedMs = Math.round(io.clock.monotonic() - startedAt);
  if (options.json)
    await writeData(io, [{ event: 'summary', dryRun: options.dryRun, ...summary, elapsedMs }]);
  const out = shellWord(shownPath(absolutePath(options.out, request.surroundings.home)));
  if (!options.quiet || summary.failed > 0)
    printLines(io.stderr, closing(summary, { isPlan: options.dryRun, elapsedMs, out }));
  return summary.exitCode;
}

/** The outcome or the reason of a failure, the series, the number of files, bytes, the lake, and the explanation. */
function lineOf({ outcome, reason, text, lake, files, bytes, ...series }: MergedSeries): string {
  return tabbed([
    reason ?? (outcome === 'merged' ? 'merge' : outcome),
    seriesName(series),
    files,
    bytes,
    lake,
    ...(text === undefined ? [] : [text]),
  ]);
}

interface Closing {
  readonly isPlan: boolean;
  readonly elapsedMs: number;
  /** The target as a word for a shell. */
  readonly out: string;
}

function closing({ merged, skipped, failed, files, bytes }: MergeSummary, how: Closing): string[] {
  const { isPlan, elapsedMs, out } = how;
  const parts = [
    ...(merged > 0
      ? [
          `${numberText(merged)} series ${isPlan ? 'to merge' : 'merged'} (${countText(files, 'file')}, ${bytesText(bytes)})`,
        ]
      : []),
    ...(skipped > 0 ? [`${numberText(skipped)} series skipped: ${out} has them`] : []),
    ...(failed > 0 ? [`${numberText(failed)} series not merged`] : []),
  ];
  const [first = 'no series'] = parts;
  const head = `${[first, ...parts.slice(1)].join('; ')}${isPlan ? '' : ` in ${durationText(elapsedMs)}`}`;
  if (isPlan) return [head];
  if (failed > 0) return [head, ADVICE, `next  the same command again, after the reasons above are removed`];
  return merged > 0 ? [head, `next  cryptodl coverage --out ${out}`] : [head];
}

const ADVICE =
  'a clash needs a decision: keep the series of one lake, and fetch what it lacks with the command of the other (cryptodl vision), before you remove the other; damaged: cryptodl verify --fix and cryptodl repair in that lake; settings: cryptodl vision --force in that lake';
