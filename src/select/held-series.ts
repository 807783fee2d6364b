/** Which of the held series `verify` and `repair` look at. */
import { join } from 'node:path';
import { firstSymlink, symlinkMessage } from '../lake/path-checks.js';
import { keyPath, MANIFEST } from '../lake/layout.js';
import { listEntries, walkLake } from '../lake/walk-lake.js';
import type { SeriesFolder } from '../lake/walk-lake.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Format, Series } from '../model/task.js';
import type { FlagName } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import type { Source } from '../source/source.js';
import { didYouMean, nearest } from '../text/did-you-mean.js';
import { shownPath } from '../text/printable.js';
import { givenFlags } from './describe-selection.js';
import { isAll } from './select-datasets.js';
import { readPatterns, selectSymbols } from './symbol-patterns.js';
import type { ReadList, SymbolPatterns } from './symbol-patterns.js';
import type { LakeSelection } from './selection.js';

export interface HeldSelection {
  /** Nothing was said: the whole lake, also what is in no series. */
  readonly isWhole: boolean;
  readonly has: (series: Series) => boolean;
  readonly format: Format | undefined;
}

const NARROWING = ['market', 'dataset', 'interval', 'symbols', 'quote'] as const;

/** Explicit flags choose. Throws usage errors for what the lake does not hold. */
export async function chooseHeld(
  { options, paths, venue }: LakeSelection,
  resolved: Resolved,
  read: ReadList,
): Promise<HeldSelection> {
  const given = givenFlags(resolved);
  const format = given.has('format') ? options.format : undefined;
  if (!NARROWING.some((name) => given.has(name)))
    return { isWhole: format === undefined, has: () => true, format };
  const patterns = options.symbols === undefined ? undefined : await readPatterns(options.symbols, read);
  const held: Series[] = [];
  for await (const found of walkLake(paths.root, venue)) if (found.kind === 'series') held.push(found.series);
  const names = new Set(narrowHeld(held, resolved, patterns).map(seriesName));
  return { isWhole: false, has: (series) => names.has(seriesName(series)), format };
}

// `--market`, `--dataset`, `--interval`, `--symbols` and `--quote` over what a lake holds.

/** Only what is given chooses; throws usage errors for what the lake does not hold. `patterns`: of --symbols. */
export function narrowHeld(
  held: readonly Series[],
  { options, origins }: Pick<Resolved, 'options' | 'origins'>,
  patterns: SymbolPatterns | undefined,
): Series[] {
  if (held.length === 0) throw nothingHeld(options.out);
  const isGiven = (name: FlagName): boolean => origins[name] !== 'default';
  let chosen = held;
  const narrow = (name: FlagName, values: readonly string[], of: (series: Series) => string | undefined) => {
    if (!isGiven(name) || isAll(values)) return;
    refuseUnknown(name, values, chosen, of, options.out);
    chosen = chosen.filter((series) => {
      const value = of(series);
      // Datasets without intervals are not chosen by them.
      return value === undefined || values.includes(value);
    });
  };
  narrow('market', options.market, ({ market }) => market);
  narrow('dataset', options.dataset, ({ dataset }) => dataset);
  narrow('interval', options.interval, ({ interval }) => interval);
  const quotes = options.quote ?? [];
  const available = [...new Set(chosen.map(({ symbol }) => symbol))];
  const every = { names: [], globs: ['*'], exclusions: [] };
  const { symbols } = selectSymbols(patterns ?? every, quotes, available, whatOf(chosen), options.out);
  const wanted = new Set(symbols);
  return chosen.filter(({ symbol }) => wanted.has(symbol));
}

export function nothingHeld(out: string): Error {
  return usage(`${out} holds no series`, 'name the lake with --out, or download something into it', {
    command: ['vision', '--symbols', 'BTCUSDT', '--days', '7'],
  });
}

function refuseUnknown(
  name: FlagName,
  values: readonly string[],
  held: readonly Series[],
  of: (series: Series) => string | undefined,
  out: string,
): void {
  const known = [...new Set(held.flatMap((series) => of(series) ?? []))].sort();
  const unknown = values.find((value) => !known.includes(value));
  if (unknown === undefined || (known.length === 0 && held.length > 0)) return;
  const near = nearest(unknown, known) ?? known[0];
  throw usage(
    `--${name}: ${out} holds no ${unknown}; it holds ${known.join(', ')}`,
    didYouMean(unknown, known),
    { flags: { [name]: near ?? null } },
  );
}

function whatOf(series: readonly Series[]): string {
  const names = new Set(
    series.map(({ market, dataset, interval }) => [market, dataset, interval].filter(Boolean).join(' ')),
  );
  return [...names].slice(0, 3).join(', ') + (names.size > 3 ? ' …' : '');
}

// Which series a lake holds: its folders that have a manifest.

/** In path order; an absent lake holds nothing. `warn` is told of what is left out although it looks like a series. */
export async function* heldSeries(
  root: string,
  venue: Source,
  warn: (message: string) => void,
): AsyncGenerator<Series> {
  for await (const found of walkLake(root, venue)) {
    if (found.kind === 'link' && `${found.path}/`.startsWith(`${venue.name}/`))
      warn(symlinkMessage(join(root, found.path)));
    if (found.kind !== 'series') continue;
    if (found.links.includes(MANIFEST)) warn(symlinkMessage(join(found.path, MANIFEST)));
    else if (found.files.includes(MANIFEST)) yield found.series;
    else if (await hasFiles(root, venue, found))
      warn(
        `${shownPath(found.path)} has files and no ${MANIFEST}: it is left out; cryptodl verify --fix puts them aside and remembers what they hold, cryptodl repair then fetches that`,
      );
  }
}

/** In its folder, or below the keys of its zips. */
async function hasFiles(root: string, venue: Source, { series, files }: SeriesFolder): Promise<boolean> {
  if (files.length > 0) return true;
  for (const cadence of ['daily', 'monthly'] as const) {
    const place = keyPath(venue.archive.seriesPrefix(series, cadence).slice(0, -1));
    if ((await firstSymlink(root, place)) !== undefined) continue;
    if ((await listEntries(join(root, place))).files.length > 0) return true;
  }
  return false;
}
