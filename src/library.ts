/** `import { vision, sql } from 'cryptodl'`: the verbs of the program as functions that print nothing. docs/library.md explains them. */
import { homedir } from 'node:os';
import type { AuditItem } from './verbs/audit/findings.js';
import type { AuditSummary } from './verbs/audit/audit-tally.js';
import type { ListFields } from './verbs/list/list-items.js';
import type { Cell } from './convert/stream-rows.js';
import type { CoverageTotals as CoverageRecord } from './lake/catalogue/coverage-counts.js';
import type { SeriesRecord } from './verbs/coverage/coverage-records.js';
import { startRun, type RunRequest } from './run/run.js';
import { summaryOf, type RunSummary } from './run/report/run-summary.js';
import { CryptodlError, inLibraryErrors, libraryError, itemsOf } from './library/items.js';
import type { Begun, Items, ItemsWithSummary } from './library/items.js';
import { checkHooks, observerOf, callOf, LIBRARY_VERBS, rawValues } from './library/options.js';
import type { Hooks, RunHooks, LibraryVerb, OptionsOf } from './library/options.js';
import { onLake } from './library/lake-in-bucket.js';
import { systemClock } from './model/clock.js';
import { usage } from './model/errors.js';
import type { ExitCode } from './model/exit-code.js';
import type { TaskOutcome } from './model/outcome.js';
import { folderOf } from './files/environment.js';
import { NO_PROXIES } from './files/proxies.js';
import { camelCase } from './plan/options/flags.js';
import type { ListName } from './plan/options/periods.js';
import { resolveOptions } from './plan/options/resolve.js';
import type { VerbRequest } from './plan/options/verb-request.js';
import type { RunVerb } from './plan/select/selection.js';
import { loadBinance } from './exchange/binance/binance.js';
import { forEachItem } from './run/verb/items.js';
import type { LakeFinding } from './run/verify/lake-finding.js';
import type { VerifySummary } from './run/verify/verify-lake.js';

export type { Announcement } from './model/observer.js';
export type { ErrorCode } from './model/errors.js';
export type { S3Credentials } from './model/lake-address.js';
export { CryptodlError };
export type {
  AuditItem,
  AuditSummary,
  ExitCode,
  Hooks,
  Items,
  ItemsWithSummary,
  LakeFinding,
  ListFields,
  ListName,
  RunHooks,
  RunSummary,
  TaskOutcome,
  VerifySummary,
};

export type VisionOptions = OptionsOf<'vision'>;
export type MetricsOptions = OptionsOf<'metrics'>;
export type RepairOptions = OptionsOf<'repair'>;
export type ListOptions = OptionsOf<'list'>;
export type CoverageOptions = OptionsOf<'coverage'>;
export type VerifyOptions = OptionsOf<'verify'>;
export type AuditOptions = OptionsOf<'audit'>;
export type SqlOptions = OptionsOf<'sql'>;

/**
 * The outcomes of a run in the order of their arrival, and its numbers. A failed object is an outcome, not an exception. A run that
 * cannot begin or ends early rejects with a CryptodlError: `usage`, `locked`, `disk-full`, `interrupted` and so on.
 */
export type Run = ItemsWithSummary<TaskOutcome, RunSummary>;

/** Downloads from the archive into the lake. Throws a CryptodlError with the code `usage` for wrong options. */
export const vision = (options: VisionOptions, hooks: RunHooks = {}): Run => run('vision', options, hooks);

/** Downloads funding rates, open interest, ratios, taker volume and basis over REST into the lake. */
export const metrics = (options: MetricsOptions, hooks: RunHooks = {}): Run => run('metrics', options, hooks);

/** Fetches damaged and missing data of the lake again. */
export const repair = (options: RepairOptions = {}, hooks: RunHooks = {}): Run =>
  run('repair', options, hooks);

/** Lists `markets`, `datasets`, `symbols` or `periods`. */
export function list<Name extends ListName>(
  what: Name,
  options: ListOptions = {},
  hooks: Hooks = {},
): Items<ListFields[Name]> {
  return inLibraryErrors(() => {
    if (typeof what !== 'string') throw usage('list takes a name and an object of options', callOf('list'));
    const request = requestOf('list', options, hooks);
    return itemsOf(async function* (begun) {
      const { listItems } = await import('./verbs/list/list.js');
      const { listName } = await import('./plan/options/periods.js');
      const name = listName(what) as Name;
      for await (const { fields } of listItems(name, { ...request, ...begun })) yield fields;
    }, hooks.signal);
  });
}

export type SeriesCoverage = SeriesRecord;
export interface CoverageSummary extends CoverageRecord {
  readonly exitCode: ExitCode;
}

/** Compares the row counts in the manifests of the lake with the expected ones. One item per series and format. */
export function coverage(
  options: CoverageOptions = {},
  hooks: Hooks = {},
): ItemsWithSummary<SeriesCoverage, CoverageSummary> {
  return lakeCall('coverage', options, hooks, async function* (request) {
    const { coverSelected } = await import('./run/verdict/cover-selected.js');
    const { seriesRecord } = await import('./verbs/coverage/coverage-records.js');
    const { covered, found, periodOf } = await coverSelected(request);
    for await (const one of covered) yield seriesRecord(one, periodOf(one));
    return { ...found.record(), exitCode: found.exitCode };
  });
}

/** Compares the files of the lake with its manifests; with `fix`, moves or removes what is not sound. */
export function verify(
  options: VerifyOptions = {},
  hooks: Hooks = {},
): ItemsWithSummary<LakeFinding, VerifySummary> {
  return lakeCall('verify', options, hooks, async function* (request) {
    const { verifyLake } = await import('./run/verify/verify-lake.js');
    return yield* verifyLake(request);
  });
}

/** Compares monthly objects with the daily objects of the same days; with `prefer: 'daily'`, rebuilds worse months of the lake; with `against: 'rest'`, compares bars of the lake with REST. */
export function audit(
  options: AuditOptions = {},
  hooks: Hooks = {},
): ItemsWithSummary<AuditItem, AuditSummary> {
  return lakeCall('audit', options, hooks, async function* (request) {
    const { auditSelected } = await import('./verbs/audit/audit.js');
    const { selectRebuilds } = await import('./verbs/audit/rebuilds.js');
    const tally = yield* auditSelected(request);
    if (request.resolved.options.prefer !== 'daily') return tally.summary();
    if (tally.rebuilds.length === 0) return tally.summary(0);
    const rebuild = runItems({ ...request, verb: 'vision', select: selectRebuilds(tally.rebuilds) });
    const { exitCode } = await forEachItem(rebuild, () => undefined);
    return tally.summary(exitCode);
  });
}

/**
 * A cell without loss: integers of 64 bits and more as bigint, decimals as text, times as text in UTC with microseconds
 * (`2024-01-15T08:00:00.000000Z`), lists and structs as arrays and objects.
 */
export type SqlValue = Cell;
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** Runs one SELECT over the views of the lake. Rows are read while the query runs, so a large result needs little memory. */
export function sql(query: string, options: SqlOptions = {}, hooks: Hooks = {}): Items<SqlRow> {
  if (typeof query !== 'string')
    throw libraryError(usage('sql takes a query and an object of options', callOf('sql')));
  return lakeCall('sql', options, hooks, async function* (request) {
    const { queryLake } = await import('./run/verb/query-lake.js');
    const result = await queryLake(query, request);
    try {
      const names = result.columns.map(({ name }) => name);
      for await (const rows of result.batches)
        for (const row of rows) yield Object.fromEntries(names.map((name, at) => [name, row[at] ?? null]));
    } finally {
      await result.close();
    }
  });
}

/** Checks the arguments of a call. The environment and config files are not read. */
function requestOf(verb: LibraryVerb, options: object, hooks: RunHooks): Omit<VerbRequest, keyof Begun> {
  const values = rawValues(verb, options);
  checkHooks(verb, hooks);
  const exchange = loadBinance();
  const resolved = resolveOptions(
    LIBRARY_VERBS[verb],
    [{ origin: 'flag', values, nameOf: camelCase }],
    exchange,
  );
  return {
    exchange,
    resolved,
    surroundings: { home: folderOf(homedir()), stateHome: undefined, proxies: NO_PROXIES },
    observer: observerOf(hooks),
    clock: systemClock,
  };
}

const run = (verb: RunVerb, options: object, hooks: RunHooks): Run =>
  lakeCall(verb, options, hooks, (request) => runItems({ ...request, verb }));

async function* runItems(request: RunRequest): AsyncGenerator<TaskOutcome, RunSummary> {
  const end = yield* startRun(request);
  if (end.ended !== undefined) throw end.ended;
  return summaryOf(end);
}

function lakeCall<Item, Summary>(
  verb: LibraryVerb,
  options: object,
  hooks: RunHooks,
  act: (request: VerbRequest) => AsyncGenerator<Item, Summary>,
): ItemsWithSummary<Item, Summary> {
  const request = inLibraryErrors(() => requestOf(verb, options, hooks));
  return itemsOf((begun) => onLake(LIBRARY_VERBS[verb], { ...request, ...begun }, hooks, act), hooks.signal);
}
