/** The series in a lake, and the selection among them by verbs that only read or mend a lake. */
import { dirname, join } from 'node:path';
import { symlinkMessage } from '../../files/path-checks.js';
import { readHeld } from '../../lake/catalogue/read-series.js';
import { FOLDERS } from '../../lake/layout.js';
import { walkLake } from '../../lake/walk-lake.js';
import { usage } from '../../model/errors.js';
import { FORMATS, layerName, seriesName, type Format, type Series } from '../../model/task.js';
import type { FlagName } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import type { SymbolPatterns } from '../options/symbols.js';
import { emptyShardText, isInShard } from '../options/shard.js';
import { nowMsOf, type HeldFlag, type VerbRequest } from '../options/verb-request.js';
import type { Exchange } from '../../exchange/exchange.js';
import { didYouMean } from '../../text/did-you-mean.js';
import { listText } from '../../model/units.js';
import { absolutePath, shownPath } from '../../text/printable.js';
import { givenFlags, type LakeContext } from './selection.js';
import { isAll } from './select-datasets.js';
import { selectSymbols } from './match-symbols.js';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { SeriesStates } from '../../lake/catalogue/day-states.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { existsSync } from 'node:fs';
import { realpath } from 'node:fs/promises';

export interface HeldSelection {
  /** The names of the selected series; none if all of them are in other shards. Undefined: all series. */
  readonly names: ReadonlySet<string> | undefined;
  readonly format: Format | undefined;
  /** Whether the whole lake is selected, including files outside of series. */
  readonly isWhole: boolean;
}

/** Only given flags restrict the selection. Throws usage errors for values that the lake does not have. */
export async function selectHeldSeries(
  { options, paths, exchange, observer }: LakeContext<HeldFlag | 'format' | 'shard'>,
  resolved: Resolved<never>,
): Promise<HeldSelection> {
  const given = givenFlags(resolved);
  const format = given.has('format') ? options.format : undefined;
  const filters = ['market', 'dataset', 'interval', 'symbols', 'quote'];
  const isNarrowed = filters.some((name) => given.has(name)) || options.shard !== undefined;
  const all = { names: undefined, format, isWhole: !isNarrowed && format === undefined };
  if (all.isWhole) return all;
  const held: Series[] = [];
  for await (const found of walkLake(paths.root, exchange))
    if (found.kind === 'series') held.push(found.series);
  const chosen = await selectGiven(held, { resolved: { ...resolved, options }, observer });
  if (format !== undefined)
    await refuseFormat(format, chosen, { root: paths.root, exchange, out: options.out });
  if (!isNarrowed) return all;
  const own = chosen.filter((series) => isInShard(options.shard, exchange, series));
  if (options.shard !== undefined && own.length === 0) observer.warn(emptyShardText(options.shard));
  return { ...all, names: new Set(own.map(seriesName)) };
}

/**
 * Filters series by the given flags; `patterns` are those of --symbols. --interval without --dataset leaves out no series of `anyInterval`.
 * Warns of words of --symbols that select nothing. Throws usage errors for values that the lake does not have.
 */
export function filterHeldSeries(
  held: readonly Series[],
  { options, origins }: Resolved<HeldFlag>,
  patterns: SymbolPatterns = { names: [], globs: ['*'], exclusions: [] },
  warn?: (message: string) => void,
  anyInterval: readonly string[] = [],
): Series[] {
  if (held.length === 0) throw nothingHeld(options.out);
  const isGiven = (name: FlagName): boolean => origins[name] !== 'default';
  let chosen = held;
  const narrow = (name: FlagName, values: readonly string[], of: (series: Series) => string | undefined) => {
    if (!isGiven(name) || isAll(values)) return;
    const known = [...new Set(chosen.flatMap((series) => of(series) ?? []))].sort();
    const unknown = values.find((value) => !known.includes(value));
    if (unknown !== undefined && (known.length > 0 || chosen.length === 0))
      throw usage(
        `--${name}: ${options.out} holds no ${unknown}; it holds ${known.join(', ')}`,
        didYouMean(unknown, known) ?? `choose one of these with --${name}, or leave it out`,
      );
    chosen = chosen.filter((series) => {
      const value = of(series);
      // --interval alone selects series with an interval; together with --dataset, it does not filter datasets without intervals.
      return value === undefined ? isGiven('dataset') : values.includes(value);
    });
  };
  narrow('market', options.market, ({ market }) => market);
  narrow('dataset', options.dataset, ({ dataset }) => dataset);
  const isOfAny = ({ dataset }: Series): boolean => !isGiven('dataset') && anyInterval.includes(dataset);
  const ofAny = chosen.filter(isOfAny);
  chosen = chosen.filter((series) => !isOfAny(series));
  if (chosen.length > 0) narrow('interval', options.interval, ({ interval }) => interval);
  chosen = [...chosen, ...ofAny];
  const available = [...new Set(chosen.map(({ symbol }) => symbol))];
  const symbols = selectSymbols(patterns, options.quote, available, {
    what: listText(new Set(chosen.map(layerName)), 3),
    owner: options.out,
    skipUnknown: options.skipUnknown,
    warn,
  });
  const selected = new Set(symbols);
  return chosen.filter(({ symbol }) => selected.has(symbol));
}

/** The absolute root of the lake, and all series with a manifest, in path order. `warn` is called for symbolic links. */
export async function readVerbLake(
  { exchange, resolved, surroundings, observer }: VerbRequest<'out'>,
  warn = observer.warn.bind(observer),
) {
  const root = absolutePath(resolved.options.out, surroundings.home);
  const held: Series[] = [];
  for await (const series of heldSeries(root, exchange, warn)) held.push(series);
  return { root, held };
}

export async function selectGiven(
  held: readonly Series[],
  { resolved, observer }: Pick<VerbRequest<HeldFlag>, 'resolved'> & Pick<LakeContext, 'observer'>,
  anyInterval: readonly string[] = [],
): Promise<Series[]> {
  const patterns = await resolved.options.symbols?.patterns();
  return filterHeldSeries(held, resolved, patterns, observer.warn.bind(observer), anyInterval);
}

/** Throws a usage error if all series hold only other formats. The verb reports a damaged or missing manifest. */
export async function refuseFormat(
  format: Format,
  series: readonly Series[],
  lake: { readonly root: string; readonly exchange: Exchange; readonly out: string },
): Promise<void> {
  for (const one of series) {
    const manifest = await readHeld(lake.root, lake.exchange, one).catch(() => undefined);
    if (manifest === undefined || FORMATS.every((each) => manifest[each].size === 0)) return;
    if (manifest[format].size > 0) return;
  }
  if (series.length > 0)
    throw usage(`--format ${format}: ${lake.out} holds no ${format} series`, 'leave --format out');
}

export const nothingHeld = (out: string): Error =>
  usage(
    `${out} holds no series`,
    'name the lake with --out, or download something into it: cryptodl vision --symbols BTCUSDT --days 7',
  );

/** The series with a manifest, in path order. `warn` is called for symbolic links. */
export async function* heldSeries(
  root: string,
  exchange: Exchange,
  warn: (message: string) => void,
): AsyncGenerator<Series> {
  // A link may stand in place of a folder of series or of their manifests.
  const folders = [exchange.name, FOLDERS.manifests];
  for await (const found of walkLake(root, exchange)) {
    const isOfSeries = folders.some((folder) => `${found.path}/`.startsWith(`${folder}/`));
    if (found.kind === 'link' && isOfSeries) warn(symlinkMessage(join(root, found.path)));
    if (found.kind !== 'series') continue;
    if (found.manifest?.isLink === true) warn(symlinkMessage(join(root, found.manifest.path)));
    else if (found.manifest !== undefined) yield found.series;
  }
}

/**
 * The states of each series in the format that lacks least, because each format explains only its own files. The instants are those of
 * all formats. A series without Parquet and CSV files is not among them. Warns of manifests that cannot be read.
 */
export async function readableStates(
  root: string,
  selected: readonly Series[],
  request: VerbRequest<'now'>,
  range: Partial<DayRange> = {},
): Promise<Map<Series, SeriesStates>> {
  const { exchange, observer, signal } = request;
  const found = new Map<Series, SeriesStates>();
  const terms = {
    nowMs: nowMsOf(request),
    onRefused: ({ message }: Error) => observer.warn(message),
    rangesOf: () => [range],
    formats: ['parquet', 'csv'],
  } as const;
  for await (const one of openCatalogue(root, exchange, signal).states(selected, terms)) {
    const other = found.get(one.series) ?? one;
    const [firstInstant] = [one.firstInstant, other.firstInstant].filter((time) => time !== undefined).sort();
    const lasts = [one.lastInstant, other.lastInstant].filter((time) => time !== undefined);
    const lastInstant = lasts.sort().at(-1);
    found.set(one.series, { ...(one.missing < other.missing ? one : other), firstInstant, lastInstant });
  }
  return found;
}

/** Throws a usage error for a --target that is a lake, or a file or folder in one. The path is absolute; links are followed. `exchange`: its name. */
export async function refuseInLake(target: string, exchange: string): Promise<void> {
  for (let folder = await realPath(target); dirname(folder) !== folder; folder = dirname(folder))
    if (existsSync(join(folder, FOLDERS.manifests, exchange)))
      throw usage(
        `--target ${shownPath(target)} is in the lake ${shownPath(folder)}`,
        'name a place outside of the lake',
      );
}

/** The real path of the deepest existing folder, with the rest. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(await realPath(above), path.slice(above.length));
  }
}
