/** The command that fetches what coverage found missing, and nothing else. */
import { DAY_SECONDS } from '../../lake/catalogue/gap.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { grouped } from '../../model/by-name.js';
import { dayText } from '../../model/calendar.js';
import { seriesName } from '../../model/task.js';
import type { Series } from '../../model/task.js';
import { isExactName } from '../../plan/options/symbols.js';
import { givenWords } from '../../plan/options/option-layers.js';
import type { FlagName } from '../../plan/options/flags.js';
import type { VerbName } from '../../plan/options/verb-spec.js';
import type { Command } from '../../run/verb.js';
import type { LastFailures } from '../../run/select-failures.js';
import { barOfInterval } from '../../exchange/keys.js';
import { findDataset, isArchived, isMade } from '../../exchange/exchange-spec.js';
import { mendsOf, mendSources } from '../../run/verdict/mends.js';
import { commandLine, shownPath } from '../../text/printable.js';

/** Days that a series lacks before or after its own. */
interface Lack extends DayRange {
  readonly verb: 'vision' | 'metrics';
  readonly series: Series;
}

interface NextStepContext extends Pick<Command, 'exchange' | 'verbs' | 'resolved'> {
  readonly nowMs: number;
  readonly failures: LastFailures | undefined;
}

export class NextStep {
  readonly #lacks: Lack[] = [];
  /** Gaps within the own days of their series: those of the last failure report, and the others. */
  #reported = 0;
  #others = 0;
  /** The lengths of bars with missing days. */
  readonly #bars = new Set<string>();

  constructor(private readonly context: NextStepContext) {}

  add(states: SeriesStates): void {
    const { own, series, format, gaps } = states;
    const spec = findDataset(this.context.exchange, series.market, series.dataset);
    if (spec !== undefined && isMade(spec)) {
      if (gaps.some(({ isMissing }) => isMissing)) this.#bars.add(series.interval ?? '');
      return;
    }
    const sources = mendSources({ ...series, format }, this.context.exchange, this.context.nowMs);
    const verb = spec !== undefined && !isArchived(spec) ? 'metrics' : 'vision';
    const isReported = this.context.failures?.bySeries.has(seriesName(series)) === true;
    for (const gap of gaps) {
      if (!gap.isMissing) continue;
      const [from, to] = [Math.floor(gap.from / DAY_SECONDS), Math.ceil(gap.to / DAY_SECONDS)];
      if (from < own.from || to > own.to) {
        if (isExactName(series.symbol)) this.#lacks.push({ verb, series, from, to });
      } else if (gap.reason.startsWith('failed:') && isReported) this.#reported += 1;
      // `repair` takes a later revision of a cut day, if there is one.
      else if (gap.reason === 'cut' || mendsOf(gap, sources).length > 0) this.#others += 1;
    }
  }

  get #isNamed(): boolean {
    return this.context.resolved.texts.symbols !== undefined;
  }

  /** A line for a shell; undefined if nothing is missing. */
  line(): string | undefined {
    const { failures } = this.context;
    // Patterns would also select symbols that the lake does not have. So with `--symbols`, each dataset has a command that names its symbols.
    const downloads = grouped(this.#lacks, ({ verb, series }) =>
      this.#isNamed ? JSON.stringify([verb, { ...series, symbol: '' }]) : verb,
    );
    if (downloads.size > 0)
      return [...downloads.values()].map((lacks) => commandLine(this.#fetching(lacks))).join(' && ');
    if (this.#others > 0) return commandLine(['repair', ...this.#given('repair', SELECTION)]);
    if (this.#reported > 0 && failures !== undefined)
      return commandLine(['retry', shownPath(failures.path), ...this.#given('retry', ['now'])]);
    const [bars] = this.#bars;
    const given = this.#given('bars', ['out', 'market', 'symbols', 'quote']);
    return bars === undefined ? undefined : commandLine(['bars', barOfInterval(bars), ...given]);
  }

  /** The missing days of a download. Each series keeps its settings. Without `--symbols`, a download continues the series of the lake. */
  #fetching(lacks: readonly Lack[]): string[] {
    const verb = lacks[0]?.verb ?? 'vision';
    const from = lacks.reduce((least, lack) => Math.min(least, lack.from), Infinity);
    const to = lacks.reduce((most, lack) => Math.max(most, lack.to), -Infinity);
    const valuesOf = (name: 'market' | 'dataset' | 'interval' | 'symbol'): string =>
      [...new Set(lacks.flatMap(({ series }) => series[name] ?? []))].join(',');
    const layer = (['market', 'dataset', 'interval'] as const).flatMap((name) => {
      const isWanted = this.#isNamed || this.context.resolved.texts[name] !== undefined;
      return isWanted && valuesOf(name) !== '' ? [`--${name}`, valuesOf(name)] : [];
    });
    return [
      verb,
      ...this.#given(verb, ['out']),
      ...layer,
      ...(this.#isNamed ? ['--symbols', valuesOf('symbol')] : this.#given(verb, ['quote', 'shard'])),
      '--from',
      dayText(from),
      '--to',
      dayText(to - 1),
      ...this.#given(verb, ['format', 'now']),
    ];
  }

  #given(verb: VerbName, names: readonly FlagName[]): string[] {
    return givenWords(this.context.resolved, this.context.verbs[verb], names);
  }
}

const SELECTION: readonly FlagName[] = [
  'out',
  'market',
  'dataset',
  'interval',
  'quote',
  'shard',
  'format',
  'symbols',
  'now',
];
