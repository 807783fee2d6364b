/** `cryptodl verify`: prints one finding per line on stdout and the summary on stderr. */
import { forEachItem, progressPrinter } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbInput } from '../../run/verb/verb.js';
import { writeData } from '../../terminal/write-data.js';
import { withLog } from '../../run/report/log.js';
import type { ExitCode } from '../../model/exit-code.js';
import { bytesText, countText } from '../../model/units.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { absolutePath, printLines, shellWord, shownPath, tabbed } from '../../text/printable.js';
import type { LakeFinding } from '../../run/verify/lake-finding.js';
import { verifyLake } from '../../run/verify/verify-lake.js';
import type { Progress, VerifyFlag, VerifySummary } from '../../run/verify/verify-lake.js';

type Flag = VerifyFlag | 'json' | 'quiet';

/** Resolves with 0 for a sound or fixed lake, 4 if findings remain, 1 for unreadable files, 6 while a run writes. */
export const verify = async (command: VerbInput<Flag>): Promise<ExitCode> =>
  withSignals(command, (request) =>
    withLog(request, command.io, (logged) => verifyAndPrint(command, logged)),
  );

async function verifyAndPrint(
  { io, resolved }: VerbInput<Flag>,
  request: VerbRequest<Flag>,
): Promise<ExitCode> {
  const { options } = resolved;
  const printProgress = progressPrinter(options, io);
  const findings = verifyLake(request, (progress) => {
    printProgress(() => countsText(progress));
  });
  const summary = await forEachItem(findings, (finding) =>
    writeData(io, [options.json ? { event: 'finding', ...finding } : lineOf(finding)]),
  );
  if (summary === undefined) return 0;
  if (options.json) await writeData(io, [{ event: 'summary', ...summary }]);
  const isWell = summary.exitCode === 0;
  const root = absolutePath(options.out, request.surroundings.home);
  if (!options.quiet || !isWell) printLines(io.stderr, closing(summary, shellWord(shownPath(root))));
  return summary.exitCode;
}

function lineOf({ kind, path, line, text, done }: LakeFinding): string {
  const place = line === undefined ? path : `${path}:${line}`;
  return tabbed([kind, place, `${text}${done === undefined ? '' : ` (${done})`}`]);
}

const countsText = ({ series, files, bytes }: Progress): string =>
  `${countText(series, 'series')}, ${countText(files, 'file')}, ${bytesText(bytes)}`;

const MISSING =
  'missing files: cryptodl repair fetches their objects again; to give them up, delete their lines in the manifest too (docs/lake.md)';

/** `out`: the lake as a word for a shell. */
function closing(summary: VerifySummary, out: string): string[] {
  const parts = Object.entries(summary.findings).map(([kind, number]) => `${number} ${kind}`);
  if (parts.length === 0) return [`${countsText(summary)}: all sound`];
  const { fix, repair, 'nothing-known': others } = summary.left;
  return [
    `${countsText(summary)}: ${parts.join(', ')}`,
    ...((summary.findings.missing ?? 0) > 0 ? [MISSING] : []),
    ...(others > 0 ? [`${others} of them cannot be fixed by cryptodl (docs/lake.md)`] : []),
    ...(fix > 0 ? [`next  cryptodl verify --fix --out ${out}`] : []),
    ...(repair > 0 && fix === 0 ? [`next  cryptodl repair --out ${out}`] : []),
    ...(fix + repair + others === 0 ? ['everything is fixed'] : []),
  ];
}
