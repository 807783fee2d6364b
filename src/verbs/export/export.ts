/** `cryptodl export`: files for other programs from the lake. Failures and, with --dry-run, planned files go to stdout, the rest to stderr. */
import { writeText } from '../../terminal/write-data.js';
import { withSignals } from '../../run/verb/start-verb.js';
import { exitCodeOfFindings, type ExitCode } from '../../model/exit-code.js';
import { absolutePath, printLines } from '../../text/printable.js';
import { usage } from '../../model/errors.js';
import { backingOf } from '../../files/backing.js';
import type { VerbRequest } from '../../plan/options/verb-request.js';
import { UnreadableFile } from '../../lake/catalogue/file-digests.js';
import { CSV } from './csv-files.js';
import { FREQTRADE } from './freqtrade.js';
import { LEAN } from './lean.js';
import { NAUTILUS } from './nautilus-script.js';
import { TARDIS } from './tardis.js';
import type { ExportProgram, SeriesRows } from './export-file.js';
import { exportGroups } from './export-groups.js';
import { targetFolder } from './export-lake.js';
import { selectExport, type Export, type ExportCommand } from './select-export.js';
import { Tally } from './export-tally.js';
import { NOTHING_EXPORTED, tellLacking } from './lacking-data.js';
import { writeFiles } from './write-files.js';

const PROGRAMS: readonly ExportProgram[] = [FREQTRADE, TARDIS, LEAN, CSV, NAUTILUS];

/** The operand is the program. */
export async function exportFor(command: ExportCommand): Promise<ExitCode> {
  return withSignals(command, async (request) => {
    const given = await selectExport(request, programOf(command.operand, request));
    const target = given.program.script === undefined ? await targetFolder(given) : undefined;
    if (!(await tellLacking(command, given))) return exitCodeOfFindings({ lasting: true });
    return target === undefined ? printScript(command, given) : writeFiles(command, given, target);
  });
}

/** Throws usage errors, also for flags that the program does not read, and for a script about a lake in a bucket. */
function programOf(
  operand: string | undefined,
  { resolved: { options, origins }, surroundings }: VerbRequest<'out'>,
): ExportProgram {
  const program = PROGRAMS.find(({ name }) => name === operand);
  if (program === undefined)
    throw usage(
      `export needs a program to write for: ${PROGRAMS.map(({ name }) => name).join(', ')}`,
      'for example: cryptodl export freqtrade --target user_data/data/binance',
    );
  for (const { name, flags = [] } of PROGRAMS)
    for (const flag of flags)
      if (origins[flag] === 'flag' && program.flags?.includes(flag) !== true)
        throw usage(`--${flag} is for export ${name}, not for export ${program.name}`, `leave --${flag} out`);
  const isInBucket = backingOf(absolutePath(options.out, surroundings.home)) !== undefined;
  if (program.script !== undefined && isInBucket)
    throw usage(
      'the script reads local files, and this lake is in a bucket',
      'copy the lake, and name the copy with --out',
    );
  return program;
}

/** Prints the program that loads the committed files. Exit code 4 if a series cannot be read, or if there is no program because all are left out. */
async function printScript({ io, resolved }: ExportCommand, given: Export): Promise<ExitCode> {
  const { request, program, catalogue } = given;
  const tally = new Tally();
  const sources: SeriesRows[] = [];
  for await (const { items } of exportGroups(given))
    for (const item of items) {
      if ('reason' in item) tally.add(item);
      for (const source of 'reason' in item ? [] : item.sources)
        try {
          const relation = await catalogue.relation([source], source.range);
          sources.push({ ...source, files: relation?.files ?? [] });
        } catch (error) {
          if (!(error instanceof UnreadableFile)) throw error;
          tally.add({ series: source.series, reason: error.message, isFault: true });
        }
    }
  printLines(io.stderr, tally.leftOutLines());
  const isRefused = resolved.options.requireComplete && tally.refused.length > 0;
  if (isRefused || sources.length === 0) {
    printLines(io.stderr, [isRefused ? NOTHING_EXPORTED : tally.nothingText()]);
    return exitCodeOfFindings({ lasting: true });
  }
  await writeText(io, program.script?.(sources, request.exchange) ?? '');
  return exitCodeOfFindings({ lasting: tally.hasFaults });
}
