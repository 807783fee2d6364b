/** Compares the bars that would be made with the klines of the same interval that the lake has from the archive. Writes nothing. */
import { join } from 'node:path';
import { verbEngine } from '../convert/duckdb.js';
import { isFileError } from '../convert/duckdb-errors.js';
import type { DuckDbSession, Row } from '../convert/duckdb.js';
import { isoInstant } from '../convert/gaps.js';
import { quoteName, quoteText } from '../convert/sql.js';
import { bringIn } from '../lake/backing.js';
import { lakePaths, seriesFolder } from '../lake/layout.js';
import { readManifest } from '../lake/manifest.js';
import { DAY_MS, monthOf } from '../model/calendar.js';
import { CryptodlError, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Series } from '../model/task.js';
import type { VerbRequest } from '../options/verb-request.js';
import { FileDigests } from '../query/file-digests.js';
import { rowsQuery } from '../query/views.js';
import { findDataset, intervalsOf } from '../source/venue.js';
import { absolutePath } from '../text/printable.js';
import type { BarRule } from './bar-rule.js';
import { chooseSource } from './choose-source.js';
import type { BarDay, Recipe } from './day-rules.js';
import { makeBars, UnreadableSource } from './make-bars.js';
import type { BarTools } from './make-bars.js';
import { chosenRange, selectSymbols } from './select-symbols.js';
import type { SymbolSeries } from './select-symbols.js';
import { readSourceDays, sourceName, unsoundText } from './source-days.js';
import type { SourceDays } from './source-days.js';

/** A value of a bar that differs from the published one. */
interface BarDifference {
  /** The start of the bar. */
  readonly time: string;
  /** `bar` if only one of the two has the bar. */
  readonly column: string;
  readonly made: string | null;
  readonly published: string | null;
  /** Whether the source lacks rows of the bar. */
  readonly short: boolean;
}

/** The comparison of one symbol. */
export interface CheckedSeries extends Series {
  readonly outcome: 'equal' | 'different' | 'failed';
  readonly text?: string;
  readonly source?: string;
  /** Bars of the archive that were compared. */
  readonly bars: number;
  readonly differences: readonly BarDifference[];
}

export interface CheckSummary {
  readonly series: number;
  readonly failed: number;
  readonly bars: number;
  readonly differences: number;
  readonly exitCode: ExitCode;
}

/** Yields each symbol in the order of the lake. Rejects with usage errors for bars that the archive does not have. */
export async function* checkBars(
  rule: BarRule,
  request: VerbRequest,
  onMonth: () => void = () => undefined,
): AsyncGenerator<CheckedSeries, CheckSummary> {
  const { resolved, surroundings, source: venue, signal } = request;
  const { options } = resolved;
  const known = Object.keys(venue.markets).flatMap((market) => {
    const klines = findDataset(venue, market, 'klines');
    return klines === undefined ? [] : (intervalsOf(klines) ?? []);
  });
  if (!known.includes(rule.interval))
    throw usage(
      `--check: the archive has no klines of ${rule.interval}`,
      `it has ${[...new Set(known)].join(', ')}`,
    );
  const { root } = lakePaths(absolutePath(options.out, surroundings.home));
  const symbols = await selectSymbols(rule, request, { root });
  const engine = verbEngine('bars', request);
  const sums = { series: 0, failed: 0, bars: 0, differences: 0 };
  const digests = new FileDigests(signal);
  let session: DuckDbSession | undefined;
  try {
    session = await engine.session();
    for (const symbol of symbols) {
      signal.throwIfAborted();
      const checked = await checkSymbol({ rule, request, root, session, digests, onMonth }, symbol).catch(
        (error: unknown): CheckedSeries => failedCheck(symbol, error),
      );
      sums.series += 1;
      sums.failed += checked.outcome === 'failed' ? 1 : 0;
      sums.bars += checked.bars;
      sums.differences += checked.differences.length;
      yield checked;
    }
    return { ...sums, exitCode: sums.differences + sums.failed > 0 ? 4 : 0 };
  } finally {
    session?.close();
    await engine.end();
  }
}

/** Throws errors that do not concern the symbol alone. */
function failedCheck({ bars }: SymbolSeries, error: unknown): CheckedSeries {
  const isOfSeries =
    error instanceof UnreadableSource ||
    (error instanceof CryptodlError && error.code === 'manifest-damaged');
  if (!isOfSeries) throw error;
  return { ...bars, dataset: 'klines', bars: 0, differences: [], outcome: 'failed', text: error.message };
}

interface CheckContext {
  readonly rule: BarRule;
  readonly request: VerbRequest;
  readonly root: string;
  readonly session: DuckDbSession;
  readonly digests: FileDigests;
  readonly onMonth: () => void;
}

async function checkSymbol(
  context: CheckContext,
  { bars, sources, problem }: SymbolSeries,
): Promise<CheckedSeries> {
  const { rule, request, root } = context;
  const { source: venue } = request;
  const of = { ...bars, dataset: 'klines', bars: 0, differences: [] };
  if (problem !== undefined) return { ...of, outcome: 'failed', text: problem };
  const published = await readSourceDays(root, venue, { ...bars, dataset: 'klines' });
  if (published === undefined)
    return { ...of, outcome: 'failed', text: `the lake has no klines ${rule.interval} to compare with` };
  const usable: SourceDays[] = [];
  for (const series of sources) {
    const days = await readSourceDays(root, venue, series);
    if (days !== undefined) usable.push(days);
  }
  // Klines of the archive have flat candles, so bars from trades are filled too.
  const held = (await readManifest(join(root, seriesFolder(venue.name, bars)), venue.archive)).parquet;
  const chosen = chooseSource(rule, true, usable, held);
  if (chosen === undefined) return { ...of, outcome: 'failed', text: 'the source has no files' };
  const source = sourceName(chosen.recipe.source.series);
  const unsound = unsoundText(chosen.recipe.source) ?? unsoundText(published);
  if (unsound !== undefined) return { ...of, source, outcome: 'failed', text: unsound };
  const isChosen = chosenRange(request);
  const days = chosen.days.filter(({ day }) => published.byDay.has(day) && isChosen(day));
  const differences: BarDifference[] = [];
  let compared = 0;
  for (const month of monthsOf(days)) {
    request.signal.throwIfAborted();
    const found = await compareMonth(context, { request, recipe: chosen.recipe, published }, month);
    compared += found.bars;
    differences.push(...found.differences);
    context.onMonth();
  }
  const outcome = differences.length > 0 ? 'different' : 'equal';
  return { ...of, source, bars: compared, differences, outcome };
}

function monthsOf(days: readonly BarDay[]): BarDay[][] {
  const months = new Map<number, BarDay[]>();
  for (const day of days) {
    const month = months.get(monthOf(day.day)) ?? [];
    months.set(monthOf(day.day), month);
    month.push(day);
  }
  return [...months.values()];
}

interface Compared {
  readonly request: VerbRequest;
  readonly recipe: Recipe;
  readonly published: SourceDays;
}

async function compareMonth(
  { session, digests }: BarTools,
  { request: { source: venue }, recipe, published }: Compared,
  days: readonly BarDay[],
): Promise<{ readonly bars: number; readonly differences: BarDifference[] }> {
  await makeBars({ session, digests }, venue, recipe, days);
  const { series, spec, files } = published;
  const [from, to] = [days[0]?.day ?? 0, (days.at(-1)?.day ?? 0) + 1];
  const some = files.filter((file) => file.days.from < to && file.days.to > from);
  await bringIn(some.map(({ path }) => path));
  const rows = await rowsQuery({ ...series, hasInterval: true, files: some }, spec);
  const day = `(epoch_us(open_time) - ${spec.dayStartMs * 1000}) // ${DAY_MS * 1000}`;
  const table = `CREATE OR REPLACE TEMP TABLE published AS
    SELECT * REPLACE (make_timestamp(epoch_us(open_time)) AS open_time, make_timestamp(epoch_us(close_time)) AS close_time)
    FROM (${rows}) WHERE ${day} IN (${days.map((one) => one.day).join(', ')})`;
  const read = async (): Promise<void> => {
    await digests.refuseDamaged(some);
    await session.run(table);
  };
  await read().catch((error: unknown) => {
    throw isFileError(error) ? new UnreadableSource(published, error) : error;
  });
  const [count] = await session.rows('SELECT count(*) AS bars FROM published');
  const columns = spec.columns
    .map(({ name, type }) => ({ name, type }))
    .filter(({ name }) => name !== 'open_time' && name !== 'ignore');
  const values = columns.map(({ name, type }) => {
    const value = (side: string): string =>
      type === 'number' ? `CAST(${side}.${quoteName(name)} AS DOUBLE)` : `${side}.${quoteName(name)}`;
    const isRounded = SUMS.includes(name) && !recipe.source.isText;
    const differ = `${value('made')} IS DISTINCT FROM ${value('published')}`;
    const isFar = isRounded ? `AND coalesce(${isBeyond(value('made'), value('published'))}, true)` : '';
    return `SELECT open_time, ${quoteText(name)} AS name, CAST(${value('made')} AS VARCHAR) AS m, CAST(${value('published')} AS VARCHAR) AS p, is_short
      FROM made JOIN published USING (open_time) WHERE ${differ} ${isFar}`;
  });
  const found = await session.rows(`${values.join(' UNION ALL ')}
    UNION ALL SELECT open_time, 'bar', CASE WHEN made."count" IS NULL THEN NULL ELSE 'is there' END,
      CASE WHEN published."count" IS NULL THEN NULL ELSE 'is there' END, coalesce(is_short, true)
      FROM made FULL JOIN published USING (open_time)
      WHERE (made."count" IS NULL OR published."count" IS NULL) AND coalesce(made."count", published."count") > 0
    ORDER BY open_time, name`);
  return { bars: Number(count?.['bars']), differences: found.map(differenceOf) };
}

/** The columns that are sums of rows. */
const SUMS = ['volume', 'quote_volume', 'taker_buy_volume', 'taker_buy_quote_volume'];

/**
 * Whether two sums differ by more than the rounding of their parts. A double is off by 2^-53 of its value, and so are the parts of a sum and
 * the published sum. Of bars with millions of rows, the limit is a half of 10^-9.
 */
function isBeyond(made: string, published: string): string {
  return `abs(${made} - ${published}) > least((row_count + 1) * pow(2, -53), 5e-10) * greatest(abs(${made}), abs(${published}))`;
}

function differenceOf(row: Row): BarDifference {
  const text = (name: string) => row[name] as string | null;
  return {
    time: isoInstant(row, 'open_time'),
    column: String(row['name']),
    made: text('m'),
    published: text('p'),
    short: row['is_short'] === true,
  };
}
