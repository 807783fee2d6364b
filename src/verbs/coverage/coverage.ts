/** `cryptodl coverage`: prints the held rows of a lake compared with the expected rows. */
import { listText } from '../../model/units.js';
import { nowMsOf, type CoverageFlag } from '../../plan/options/verb-request.js';
import { tapped } from '../../run/verb/items.js';
import { withSignals } from '../../run/verb/start-verb.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { writeData, writeExact, writeText } from '../../terminal/write-data.js';
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import { printLines, commandLine, shownPath } from '../../text/printable.js';
import { coverSelected, type LakeCoverage } from '../../run/verdict/cover-selected.js';
import type { CoverageCounts } from '../../lake/catalogue/coverage-counts.js';
import { coverageTexts } from './print-coverage.js';
import { CSV_HEAD, csvLines, seriesRecord } from './coverage-records.js';
import { DAY_SECONDS } from '../../model/units.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { dayText } from '../../model/calendar.js';
import { seriesName } from '../../model/task.js';
import type { LastFailures } from '../../run/failures/last-failures.js';
import type { FlagName } from '../../plan/options/flags.js';
import type { VerbName } from '../../plan/options/verb-spec.js';
import { findDataset, isArchived, isMade } from '../../exchange/exchange-spec.js';
import { mendsOf, mendSources } from '../../run/verdict/mends.js';
import { givenWords } from '../../plan/options/print-options.js';

const MOST_REFUSED = 10;

type CoverageCommand = VerbCall<CoverageFlag | 'all' | 'csv' | 'json' | 'quiet' | 'summary'>;

/** Resolves with 1 when a manifest or one of its lines cannot be read, else with 4 when a series is below `--min`. */
export async function coverage(command: CoverageCommand): Promise<ExitCode> {
  const { options } = command.resolved;
  if (options.json && options.csv) throw usage('--json and --csv cannot be used together', 'keep one');
  if (options.summary && options.csv) throw usage('--summary and --csv cannot be used together', 'keep one');
  return withSignals(command, async (request) => {
    const lakeCoverage = await coverSelected(request);
    const next = new NextStep(command, nowMsOf(request), lakeCoverage.failures);
    await write(command, lakeCoverage, next);
    return conclude(command, lakeCoverage.found, next);
  });
}

async function write(
  { io, resolved }: CoverageCommand,
  { covered, found, by, periodOf }: LakeCoverage,
  next: NextStep,
): Promise<void> {
  const { options } = resolved;
  const all = tapped(covered, (states) => next.add(states));
  if (options.summary || options.json) {
    for await (const states of all) {
      if (options.summary) continue;
      if (!(await writeData(io, [{ event: 'series', ...seriesRecord(states, periodOf(states)) }]))) return;
    }
    await writeData(io, [options.json ? { event: 'summary', ...found.record() } : found.line()]);
  } else if (options.csv) {
    if (!(await writeExact(io, CSV_HEAD))) return;
    for await (const states of all)
      if (!(await writeExact(io, csvLines(states, periodOf(states)).join('')))) return;
  } else {
    for await (const text of coverageTexts(all, io, { by, isAll: options.all }))
      if (!(await writeText(io, text))) return;
  }
}

function conclude(
  { io, resolved }: CoverageCommand,
  { refused, below, exitCode }: CoverageCounts,
  next: NextStep,
): ExitCode {
  const { minPercent = 0, json, csv, summary, quiet } = resolved.options;
  const more = refused.length - MOST_REFUSED;
  const line = next.line();
  printLines(io.stderr, [
    ...refused
      .slice(0, MOST_REFUSED)
      .flatMap(({ message, hint }) => [`cryptodl: ${message}`, ...(hint === undefined ? [] : [`  ${hint}`])]),
    ...(more > 0 ? [`cryptodl: ${more} more manifests or lines cannot be read`] : []),
    ...(below.length > 0 ? [`below --min ${minPercent} %: ${listText(below)}`] : []),
    ...(line === undefined || json || csv || summary || quiet ? [] : [`next  ${line}`]),
  ]);
  return exitCode;
}

/** The command that fetches what coverage found missing. */
class NextStep {
  /** The verbs that download days before or after those of a series, and these days. */
  readonly #verbs = new Set<'vision' | 'metrics'>();
  #from = Infinity;
  #to = -Infinity;
  /** Whether days between those of a series lack rows that `repair` may fetch. */
  #isBetween = false;
  /** Whether such days are failures of the last report. */
  #isReported = false;

  constructor(
    private readonly command: VerbCall<never>,
    private readonly nowMs: number,
    private readonly failures: LastFailures | undefined,
  ) {}

  add({ own, series, format, gaps }: SeriesStates): void {
    const { exchange } = this.command;
    const spec = findDataset(exchange, series.market, series.dataset);
    // Bars lack what their source lacks.
    if (spec !== undefined && isMade(spec)) return;
    const sources = mendSources({ ...series, format }, exchange, this.nowMs);
    const isOfReport = this.failures?.bySeries.has(seriesName(series)) === true;
    for (const gap of gaps) {
      if (!gap.isMissing) continue;
      const [from, to] = [Math.floor(gap.fromSeconds / DAY_SECONDS), Math.ceil(gap.toSeconds / DAY_SECONDS)];
      if (from < own.from || to > own.to) {
        this.#verbs.add(spec !== undefined && !isArchived(spec) ? 'metrics' : 'vision');
        this.#from = Math.min(this.#from, from);
        this.#to = Math.max(this.#to, to);
      } else if (gap.state === 'failed' && isOfReport) {
        this.#isReported = true;
      } else if (gap.reason === 'cut' || mendsOf(gap, sources).length > 0) {
        // `repair` takes a later revision of a cut day, if there is one.
        this.#isBetween = true;
      }
    }
  }

  /** A line for a shell; undefined if nothing is missing. Without `--symbols`, a download continues the series of the lake, each with its settings. */
  line(): string | undefined {
    const given = (verb: VerbName, names: readonly FlagName[]): string[] =>
      givenWords(this.command.resolved, this.command.verbs[verb], names);
    const commands = [...this.#verbs].map((verb) => {
      const days = ['--from', dayText(this.#from), '--to', dayText(this.#to - 1)];
      return commandLine([verb, ...given(verb, LAYER), ...days, ...given(verb, ['format', 'now'])]);
    });
    if (commands.length > 0) return commands.join(' && ');
    const names: readonly FlagName[] = [...LAYER, 'format', 'symbols', 'now'];
    if (this.#isBetween) return commandLine(['repair', ...given('repair', names)]);
    if (!this.#isReported || this.failures === undefined) return undefined;
    return commandLine(['retry', shownPath(this.failures.path), ...given('retry', ['now'])]);
  }
}

const LAYER: readonly FlagName[] = ['out', 'market', 'dataset', 'interval', 'quote', 'shard'];
