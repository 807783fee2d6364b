/** `--fetch`: downloads the 1d klines that a universe needs, as an ordinary run of `cryptodl vision`. */
import { download } from '../download/download.js';
import { dayText } from '../model/calendar.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { environmentLayer, resolveOptions } from '../options/resolve.js';
import type { RawLayer, RawValues, Resolved } from '../options/resolve.js';
import type { SymbolPatterns } from '../options/symbols.js';
import type { Source } from '../source/source.js';
import { DATASET } from './choose-symbols.js';
import type { UniverseMarket } from './choose-symbols.js';

export interface Fetch {
  readonly source: Source;
  readonly resolved: Resolved;
  /** The sources of the options, the flags first. */
  readonly layers: readonly RawLayer[];
  readonly io: Io;
}

/** The klines to fetch: from this day on, of these symbols (undefined: all). */
export interface Klines {
  /** The first day of the first window. */
  readonly from: number;
  readonly patterns: SymbolPatterns | undefined;
}

/** Resolves with the exit code of the run. All of its output goes to stderr. */
export function fetchKlines(fetch: Fetch, { market }: UniverseMarket, klines: Klines): Promise<ExitCode> {
  const { source, io } = fetch;
  const toStderr: Io = { ...io, stdout: io.stderr, isRead: () => true };
  const resolved = visionOptions(fetch, {
    market: [market],
    dataset: [DATASET],
    interval: ['1d'],
    ...valuesOf(klines),
  });
  return download({ source, resolved, io: toStderr, verb: 'vision' });
}

function valuesOf({ from, patterns }: Klines): RawValues {
  return {
    from: [dayText(from)],
    symbols:
      patterns === undefined
        ? ['all']
        : [...patterns.names, ...patterns.globs, ...patterns.exclusions.map((word) => `!${word}`)],
  };
}

/** The options of the universe that `vision` has too. Zips become Parquet, because the universe reads rows, and held objects are not fetched again. */
function visionOptions({ source, resolved, layers, io }: Fetch, chosen: RawValues): Resolved {
  const own: RawLayer = {
    origin: 'flag',
    values: { ...chosen, force: ['false'], json: ['false'] },
    nameOf: (name) => `--${name}`,
  };
  const [flags, ...others] = layers;
  const environment = environmentLayer(io.environment, 'vision');
  const all = [own, ...(flags === undefined ? [] : [flags]), environment, ...others].map(withoutShard);
  const first = resolveOptions('vision', all, source);
  const run =
    first.options.format === 'zip'
      ? resolveOptions('vision', [{ ...own, values: { ...own.values, format: ['parquet'] } }, ...all], source)
      : first;
  // The lake is open already: `out` of a bucket is its mirror.
  const { out, tempDir } = resolved.options;
  return { ...run, options: Object.freeze({ ...run.options, out, tempDir }) };
}

/** `--shard` would fetch only a part of the symbols. */
function withoutShard(layer: RawLayer): RawLayer {
  const { values } = layer;
  return {
    ...layer,
    values: Object.fromEntries(Object.entries(values).filter(([name]) => name !== 'shard')),
  };
}
