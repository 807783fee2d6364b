/** The command that fetches what coverage found missing, and nothing else. */
import { dayText } from '../model/calendar.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { isExactName } from '../options/symbols.js';
import { flagsOf, flagSpec } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { Resolved } from '../options/resolve.js';
import type { LastFailures } from '../select/last-failures.js';
import { barOfInterval } from '../source/keys.js';
import { findDataset, isArchived, isMade } from '../source/venue.js';
import type { Venue } from '../source/venue.js';
import { commandLine, shownPath } from '../text/printable.js';
import type { CoveredSeries } from './cover-lake.js';
import type { Gap } from './gaps.js';
import type { DayRange } from './own-days.js';
import { DAY_SECONDS } from './series-coverage.js';

interface Context {
  readonly venue: Venue;
  readonly resolved: Resolved;
  /** The given range. */
  readonly range: DayRange;
  readonly today: number;
  readonly failures: LastFailures | undefined;
}

/** Series of one dataset that lack days before or after their own. */
interface Download {
  readonly verb: Verb;
  readonly of: Omit<Series, 'symbol'>;
  readonly symbols: Set<string>;
  from: number;
  to: number;
}

export class NextStep {
  readonly #context: Context;
  readonly #downloads = new Map<string, Download>();
  /** Gaps within the own days of their series: those of the last failure report, and the others. */
  #reported = 0;
  #others = 0;
  /** The lengths of bars with missing days. */
  readonly #bars = new Set<string>();

  constructor(context: Context) {
    this.#context = context;
  }

  add(covered: CoveredSeries): void {
    const { own, series } = covered.coverage;
    const spec = findDataset(this.#context.venue, series.market, series.dataset);
    if (spec !== undefined && isMade(spec)) {
      if (covered.gaps.some(({ isMissing }) => isMissing)) this.#bars.add(series.interval ?? '');
      return;
    }
    for (const gap of covered.gaps) {
      if (!gap.isMissing) continue;
      if (gap.from < own.from * DAY_SECONDS || gap.to > own.to * DAY_SECONDS) {
        if (isExactName(covered.coverage.series.symbol)) this.#addDownload(covered, gap);
      } else if (this.#isReported(covered, gap)) this.#reported += 1;
      else this.#others += 1;
    }
  }

  #isReported({ coverage: { series, format } }: CoveredSeries, { from, to, reason }: Gap): boolean {
    if (!reason.startsWith('failed:')) return false;
    const failures = this.#context.failures?.bySeries.get(seriesName(series)) ?? [];
    return failures.some(
      (failure) =>
        failure.format === format &&
        failure.period.from * DAY_SECONDS < to &&
        failure.period.to * DAY_SECONDS > from,
    );
  }

  #addDownload({ coverage }: CoveredSeries, gap: Gap): void {
    const { symbol, ...of } = coverage.series;
    const spec = findDataset(this.#context.venue, of.market, of.dataset);
    const verb = spec !== undefined && !isArchived(spec) ? 'metrics' : 'vision';
    const name = JSON.stringify([verb, of]);
    const from = Math.floor(gap.from / DAY_SECONDS);
    const to = Math.ceil(gap.to / DAY_SECONDS);
    const download = this.#downloads.get(name) ?? { verb, of, symbols: new Set(), from, to };
    download.symbols.add(symbol);
    download.from = Math.min(download.from, from);
    download.to = Math.max(download.to, to);
    this.#downloads.set(name, download);
  }

  /** A line for a shell; undefined if nothing is missing. */
  line(): string | undefined {
    const { resolved, failures } = this.#context;
    const downloads = [...this.#downloads.values()];
    if (downloads.length > 0) {
      const lines =
        resolved.texts.symbols === undefined ? this.#continued(downloads) : this.#named(downloads);
      return lines.map((words) => commandLine(words)).join(' && ');
    }
    if (this.#others > 0)
      return commandLine(['repair', ...this.#given('repair', [...SELECTION, 'symbols', 'now'])]);
    const [bars] = this.#bars;
    if (this.#reported === 0 || failures === undefined)
      return bars === undefined
        ? undefined
        : commandLine([
            'bars',
            barOfInterval(bars),
            ...this.#given('bars', ['out', 'market', 'symbols', 'quote']),
          ]);
    return commandLine(['retry', shownPath(failures.path), ...this.#given('retry', ['now'])]);
  }

  /** A download without `--symbols` continues the series of the lake. */
  #continued(downloads: readonly Download[]): string[][] {
    const { range, today } = this.#context;
    const isToNow = range.from === undefined && (range.to ?? today) === today;
    const from = Math.min(...downloads.map((download) => download.from));
    return [...new Set(downloads.map(({ verb }) => verb))].map((verb) => [
      verb,
      ...this.#given(verb, ['out']),
      ...this.#narrowed(downloads.filter((download) => download.verb === verb)),
      ...this.#given(verb, ['quote', 'shard', 'format']),
      ...(isToNow
        ? []
        : range.from === undefined
          ? rangeFlags(from, range.to ?? today)
          : this.#given(verb, ['days', 'months', 'from', 'to'])),
      ...this.#given(verb, ['now']),
    ]);
  }

  /** Of the given datasets and intervals, those of these downloads: `metrics` refuses datasets of `vision`, and the reverse. */
  #narrowed(downloads: readonly Download[]): string[] {
    return (['market', 'dataset', 'interval'] as const).flatMap((name) => {
      const values = new Set(downloads.flatMap(({ of }) => of[name] ?? []));
      const isGiven = this.#context.resolved.texts[name] !== undefined;
      return isGiven && values.size > 0 ? [`--${name}`, [...values].join(',')] : [];
    });
  }

  /** Patterns would also select symbols that the lake does not have, so the symbols are named. Each series keeps its settings. */
  #named(downloads: readonly Download[]): string[][] {
    return downloads.map(({ verb, of, symbols, from, to }) => [
      verb,
      ...this.#given(verb, ['out']),
      '--market',
      of.market,
      '--dataset',
      of.dataset,
      ...(of.interval === undefined ? [] : ['--interval', of.interval]),
      '--symbols',
      [...symbols].join(','),
      ...rangeFlags(from, to),
      ...this.#given(verb, ['format', 'now']),
    ]);
  }

  /** The given flags of these names that the verb takes too, without those of the environment: the next command has them from there. */
  #given(verb: Verb, names: readonly FlagName[]): string[] {
    const { texts, origins } = this.#context.resolved;
    const known = flagsOf(verb);
    return names.flatMap((name) => {
      const values = texts[name];
      if (values === undefined || origins[name] === 'environment' || !known.includes(name)) return [];
      // For a flag that takes one value, the last one counts.
      const given = flagSpec(name).list === undefined ? values.slice(-1) : values;
      return [`--${name}`, given.join(',')];
    });
  }
}

const SELECTION: readonly FlagName[] = ['out', 'market', 'dataset', 'interval', 'quote', 'shard', 'format'];

function rangeFlags(from: number, to: number): string[] {
  return ['--from', dayText(from), '--to', dayText(to - 1)];
}
