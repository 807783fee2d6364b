/** Writes the files of a program: a SELECT over the relations of the catalogue for each of them, several at once. */
import { createHash } from 'node:crypto';
import { stat, readFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { openCatalogue } from '../../lake/catalogue/catalogue.js';
import type { Catalogue } from '../../lake/catalogue/catalogue.js';
import { UnreadableFile, unreadableFile } from '../../lake/catalogue/file-digests.js';
import type { DayRange } from '../../lake/catalogue/spans.js';
import { verbEngine } from '../../convert/duckdb.js';
import type { VerbEngine } from '../../convert/duckdb.js';
import { backingOf, bringIn } from '../../files/backing.js';
import { seriesFolder, refuseFile } from '../../lake/layout.js';
import type { Lock } from '../../lake/lock.js';
import { grouped } from '../../model/by-name.js';
import { CryptodlError, errnoOf, usage } from '../../model/errors.js';
import { cores, memoryLimitBytes, withinOpenFiles } from '../../files/machine.js';
import { layerName, seriesName } from '../../model/task.js';
import type { Series } from '../../model/task.js';
import { listText } from '../../model/units.js';
import { TOOL_VERSION } from '../../model/version.js';
import { mapOrdered } from '../../model/in-order.js';
import { filesOf, oneForEachPath } from './export-file.js';
import type {
  ExportFile,
  Refused,
  RowSource,
  ExportProgram,
  ProgramFlag,
  ProgramInput,
} from './export-file.js';
import { MACROS, Output, lockTarget, writeRows } from './write-rows.js';
import type { Origin } from './write-rows.js';
import type { HeldFlag, RangeFlag, VerbRequest } from '../../plan/options/verb-request.js';
import { givenRange } from '../../plan/select/date-range.js';
import { filterHeldSeries, readVerbLake, refuseInLake, selectGiven } from '../../plan/select/held-series.js';
import { isAll } from '../../plan/select/select-datasets.js';
import { parseAssets } from '../../exchange/binance/exchange-info.js';
import { reasonOf } from '../../text/path-faults.js';
import { absolutePath, shownPath } from '../../text/printable.js';

/**
 * `unchanged`: made from the same sources, and still there. `empty`: the sources have no rows for it, and there is no file. `planned`: a dry run
 * would write it. The others are failures. `foreign`: the place has a file that export did not write, or that has changed since. `unreadable`:
 * a file of the lake is damaged, or has a number that does not fit. `failed`: files of the lake changed during the export.
 */
export type FileOutcome = 'written' | 'unchanged' | 'empty' | 'planned' | 'foreign' | 'unreadable' | 'failed';

export interface ExportedFile {
  /** Relative to the target. */
  readonly file: string;
  readonly outcome: FileOutcome;
  readonly rows: number;
  readonly bytes: number;
  /** Why it failed. */
  readonly text?: string;
}

/**
 * Yields the files of the selected series group by group, with the series that are left out. A series with a file that cannot be read would
 * have a hole that nothing shows, so it is left out.
 */
export async function* exportGroups(
  { request, program, assets, selected, range }: Export,
  catalogue: Catalogue,
) {
  const { exchange, resolved } = request;
  const nameOf = (series: Series): string =>
    program.groupBy === 'pair' ? pairName(series) : layerName(series);
  const taken = new Set<string>();
  for (const group of grouped(selected, nameOf).values()) {
    // Bars come last.
    const series = group.toSorted((a, b) => Number(a.dataset === 'bars') - Number(b.dataset === 'bars'));
    const sources: RowSource[] = [];
    const refused: Refused[] = [];
    for await (const { series: one, spec, files, fault } of catalogue.series(series)) {
      const refuse = (reason: string): void => void refused.push({ series: one, reason, isFault: true });
      if (spec === undefined) refuse('this version of cryptodl does not know the dataset');
      else if (fault !== undefined) refuse(fault);
      else if (files.length === 0) refuse('the lake has no Parquet or CSV files of it');
      else sources.push({ series: one, spec, files, range });
    }
    const held = sources.filter((source) => filesOf(source).length > 0);
    const files = program.files({ exchange, sources: held, options: resolved.options, assets });
    yield { series, items: [...refused, ...oneForEachPath(files, taken)] };
  }
}

/** What the files of one export have in common. */
interface Work extends Export {
  readonly target: string;
  readonly catalogue: Catalogue;
  readonly database: VerbEngine;
  readonly lock: Lock | undefined;
  readonly signal: AbortSignal;
}

/** Sessions of DuckDB are as many as cores. So many files wait for them or for the disk, so that a long one does not stop the others. */
const FILES_PER_CORE = 4;

/**
 * Yields each file after it is written, and the series that are left out. `target`: its absolute path. Rejects with `locked` while another export
 * writes to the target, and with errors of disk, memory or interruption.
 */
export async function* exportLake(
  given: Export,
  target: string,
): AsyncGenerator<ExportedFile | Refused, void> {
  const { request, root } = given;
  const { exchange, clock, resolved } = request;
  const stop = new AbortController();
  const onLost = (error: CryptodlError): void => stop.abort(error);
  const lock = resolved.options.dryRun ? undefined : await lockTarget(target, { clock, onLost });
  const signal = AbortSignal.any([request.signal, stop.signal]);
  const database = verbEngine('export', { ...request, signal }, memoryLimitBytes() / 4);
  const catalogue = openCatalogue(root, exchange, signal);
  const work: Work = { ...given, target, catalogue, database, lock, signal };
  let running: Promise<unknown>[] = [];
  try {
    for await (const { series, items } of exportGroups(given, catalogue)) {
      running = [];
      yield* mapOrdered(
        items,
        withinOpenFiles(cores()) * FILES_PER_CORE,
        (item): Promise<ExportedFile | Refused> => {
          if ('reason' in item) return Promise.resolve(item);
          const exported = exportFile(item, work);
          running.push(exported);
          return exported;
        },
      );
      backingOf(root)?.release(series.map((one) => join(root, seriesFolder(exchange.name, one))));
    }
  } catch (error) {
    // An interrupted statement does not tell why: a lost lock, or Ctrl-C.
    signal.throwIfAborted();
    throw error;
  } finally {
    database.interrupt();
    await Promise.allSettled(running);
    await database.end();
    await lock?.release();
  }
}

async function exportFile(asked: ExportFile, work: Work): Promise<ExportedFile> {
  const { request, root, target, signal } = work;
  const { force, dryRun } = request.resolved.options;
  const of = { file: asked.path, rows: 0, bytes: 0 };
  // The lake may be below the target.
  await refuseInLake(join(target, dirname(asked.path)), request.exchange.name);
  try {
    signal.throwIfAborted();
    const output = await Output.open(target, asked.path);
    const { state } = output;
    const file = force || state === undefined || state.rows === 0 ? asked : widened(asked, state.range);
    const origin = originOf(file, work);
    if (!force && state !== undefined && (await output.isMadeBy(origin.recipe))) {
      const { rows, bytes } = state;
      return { ...of, rows, bytes, outcome: rows === 0 ? 'empty' : 'unchanged' };
    }
    if (dryRun) {
      await output.refuseForeign(force);
      return { ...of, outcome: 'planned' };
    }
    const { rows, bytes } = await write(file, { output, origin }, work);
    return { ...of, rows, bytes, outcome: rows === 0 ? 'empty' : 'written' };
  } catch (error) {
    const fault = faultOf(error, root);
    if (fault === undefined) throw error;
    return { ...of, ...fault };
  }
}

/** The file with the days that it has already, too. */
function widened(file: ExportFile, { from, to }: Partial<DayRange>): ExportFile {
  const sources = file.sources.map((source) => {
    const { range } = source;
    const first = from === undefined || range.from === undefined ? {} : { from: Math.min(from, range.from) };
    const end = to === undefined || range.to === undefined ? {} : { to: Math.max(to, range.to) };
    return { ...source, range: { ...first, ...end } };
  });
  return { ...file, sources };
}

function originOf({ sources, select, form }: ExportFile, { request, program, root }: Export): Origin {
  const files = sources.flatMap((source) =>
    filesOf(source).map(({ path, sha256 }) => ({ file: relative(root, path).split(sep).join('/'), sha256 })),
  );
  const parts = sources.map(({ series, range: { from, to } }) => [series, from, to]);
  return {
    engine: program.name,
    recipe: createHash('sha256')
      .update(JSON.stringify([MACROS, select, form, parts, files]))
      .digest('hex'),
    range: sources[0]?.range ?? {},
    sources: files,
    at: new Date(request.clock.now()).toISOString(),
    tool: `cryptodl ${TOOL_VERSION}`,
  };
}

/** Rejects with `partition-incomplete` if files of the lake change meanwhile: a run could have replaced some of them. */
async function write(
  { sources, select, form }: ExportFile,
  { output, origin }: { readonly output: Output; readonly origin: Origin },
  { request, catalogue, database, lock, signal }: Work,
): Promise<{ rows: number; bytes: number }> {
  const duckdb = await database.connect();
  try {
    // Comparing a time with and without a zone depends on it.
    await duckdb.run(`SET TimeZone = 'UTC'; ${MACROS}`);
    const paths = sources.flatMap((source) => filesOf(source).map(({ path }) => path));
    await bringIn(...paths);
    const before = await statesOf(paths);
    const relations: string[] = [];
    for (const [at, source] of sources.entries()) {
      const relation = await catalogue.relation([source], source.range);
      if (relation === undefined) throw new CryptodlError('bug', `${seriesName(source.series)}: no files`);
      relations.push(`r${at} AS NOT MATERIALIZED (${relation.sql})`);
    }
    return await output.staging(async (folder) => {
      const staged = await writeRows(duckdb, `WITH ${relations.join(', ')} ${select}`, form, folder);
      if ((await statesOf(paths)) !== before) {
        const names = sources.map(({ series }) => seriesName(series));
        throw new CryptodlError(
          'partition-incomplete',
          `${listText(names, 1)}: files of the lake changed during the export`,
          { hint: 'run the export again when no run writes to the lake' },
        );
      }
      signal.throwIfAborted();
      await lock?.confirm();
      await output.refuseForeign(request.resolved.options.force);
      return { rows: staged.rows, bytes: await output.publish(staged, origin) };
    });
  } finally {
    duckdb.close();
  }
}

async function statesOf(paths: readonly string[]): Promise<string> {
  const states = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
  return JSON.stringify(states.map((entry) => entry && [entry.size, entry.mtimeMs, entry.ino]));
}

/** The failure of one file. Undefined for an error that ends the export. */
function faultOf(error: unknown, root: string): Pick<ExportedFile, 'outcome' | 'text'> | undefined {
  if (error instanceof CryptodlError && !(error instanceof UnreadableFile)) {
    const text = [error.message, error.hint].filter(Boolean).join('; ');
    if (error.code === 'partition-incomplete') return { outcome: 'failed', text };
    return error.code === 'usage' || error.code === 'disk' ? { outcome: 'foreign', text } : undefined;
  }
  const unreadable = unreadableFile(error, root);
  return unreadable && { outcome: 'unreadable', text: unreadable.message };
}

export type ExportFlag =
  HeldFlag | RangeFlag | ProgramFlag | 'dry-run' | 'exchange-info' | 'force' | 'now' | 'target' | 'temp-dir';

export type Export = Readonly<Awaited<ReturnType<typeof selectExport>>>;

/** The series that flags select and that the program has files for. Throws usage errors, also if there is none. */
export async function selectExport(request: VerbRequest<ExportFlag>, program: ExportProgram) {
  const { resolved, observer, exchange, clock } = request;
  const { options, origins } = resolved;
  const { name, datasets, onlyNamed = [], anyInterval } = program;
  const assets = await assetsOf(request);
  // Without a given range, all days.
  const range: Partial<DayRange> = givenRange(options, options.nowMs ?? clock.now(), exchange) ?? {};
  // Why folders of series are left out: links, and files without a manifest.
  const unread: string[] = [];
  const lake = await readVerbLake(request, (message) => {
    unread.push(message);
    observer.warn(message);
  });
  const found = await selectGiven(lake.held, request, anyInterval);
  const chosen = datasets.includes(INDEX) ? [...found, ...indexesOf(found, lake.held, request)] : found;
  const named = origins.dataset === 'default' || isAll(options.dataset) ? undefined : options.dataset;
  const unknown = named?.find((dataset) => datasets.length > 0 && !datasets.includes(dataset));
  if (unknown !== undefined)
    throw usage(
      `export ${name} has no files for ${unknown}; it has files for ${datasets.join(', ')}`,
      'choose one of these with --dataset, or leave it out',
    );
  const taken = datasets.filter((dataset) => named !== undefined || !onlyNamed.includes(dataset));
  const selected = chosen.filter(({ dataset }) => datasets.length === 0 || taken.includes(dataset));
  if (selected.length > 0) return { ...lake, request, program, assets, selected, range, unread };
  const others = [...new Set(chosen.map(({ dataset }) => dataset))];
  const left = onlyNamed.find((dataset) => others.includes(dataset));
  throw usage(
    `export ${name} takes ${taken.join(', ')}; ${options.out} holds ${others.join(', ')} of these symbols`,
    left === undefined ? undefined : `for trades, name them: --dataset ${left}`,
  );
}

const INDEX = 'indexPriceKlines';

/** The index prices of the pairs of these contracts: BTCUSD of BTCUSD_PERP. --symbols names contracts, so it leaves them out. */
function indexesOf(
  chosen: readonly Series[],
  held: readonly Series[],
  { resolved }: VerbRequest<HeldFlag>,
): readonly Series[] {
  const pairs = new Set(chosen.map(pairName));
  const isOther = (series: Series): boolean =>
    series.dataset === INDEX && pairs.has(pairName(series)) && !chosen.includes(series);
  if (!held.some(isOther)) return [];
  const options = { ...resolved.options, quote: undefined };
  return filterHeldSeries(held, { ...resolved, options }, undefined, () => undefined).filter(isOther);
}

/** `cm BTCUSD`, the pair of BTCUSD_PERP and BTCUSD_240329. */
function pairName({ market, symbol }: Series): string {
  return `${market} ${symbol.replace(/_.*/, '')}`;
}

/** The absolute path of the target. Throws usage errors for a missing --target, for a file, and for a folder in the lake. */
export async function targetFolder({ request, program }: Export): Promise<string> {
  const { name } = program;
  const { target } = request.resolved.options;
  if (target === undefined)
    throw usage(
      `export ${name} needs --target, the folder for its files; --out is the lake`,
      `for example --target ${name === 'freqtrade' ? 'user_data/data/binance' : name}`,
    );
  const path = absolutePath(target, request.surroundings.home);
  refuseFile(path, '--target');
  await refuseInLake(path, request.exchange.name);
  return path;
}

/** The assets of the answer that --exchange-info names. Throws usage errors. */
async function assetsOf({
  resolved: { options },
  surroundings,
}: VerbRequest<'exchange-info'>): Promise<ProgramInput['assets']> {
  if (options.exchangeInfo === undefined) return new Map();
  const path = absolutePath(options.exchangeInfo, surroundings.home);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(
      `--exchange-info ${shownPath(path)} cannot be read (${reasonOf(errnoOf(error))})`,
      'name a file with an answer of exchangeInfo',
    );
  });
  const assets = parseAssets(text);
  if (assets !== undefined) return assets;
  throw usage(
    `--exchange-info ${shownPath(path)} is not an answer of exchangeInfo: it has no list of symbols with baseAsset and quoteAsset`,
    'save one: curl https://fapi.binance.com/fapi/v1/exchangeInfo > exchangeInfo.json',
  );
}
