/** The command that fetches what coverage found missing. */
import { DAY_SECONDS } from '../../lake/catalogue/gap.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import { dayText } from '../../model/calendar.js';
import { seriesName } from '../../model/task.js';
import type { LastFailures } from '../../run/report/last-failures.js';
import type { FlagName } from '../../plan/options/flags.js';
import type { VerbName } from '../../plan/options/verb-spec.js';
import { findDataset, isArchived, isMade } from '../../exchange/exchange-spec.js';
import { mendsOf, mendSources } from '../../run/verdict/mends.js';
import type { Command } from '../../run/verb/verb.js';
import { commandLine, shownPath } from '../../text/printable.js';
import { givenWords } from '../../plan/options/print-options.js';

export class NextStep {
  /** The verbs that download days before or after those of a series, and these days. */
  readonly #verbs = new Set<'vision' | 'metrics'>();
  #from = Infinity;
  #to = -Infinity;
  /** Whether days between those of a series lack rows that `repair` may fetch. */
  #isBetween = false;
  /** Whether such days are failures of the last report. */
  #isReported = false;

  constructor(
    private readonly command: Command<never>,
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
      const [from, to] = [Math.floor(gap.from / DAY_SECONDS), Math.ceil(gap.to / DAY_SECONDS)];
      if (from < own.from || to > own.to) {
        this.#verbs.add(spec !== undefined && !isArchived(spec) ? 'metrics' : 'vision');
        this.#from = Math.min(this.#from, from);
        this.#to = Math.max(this.#to, to);
      } else if (gap.reason.startsWith('failed:') && isOfReport) {
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
