/** Fills a lake with the runs of a random world, and compares what it holds and what it says with the truth. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cryptodl, cryptodlProcess, FAST } from './cli.js';
import type { CliResult } from './cli.js';
import { readParquet } from './lake.js';
import { DAY_MS, isDaily, isMonthly, monthOf, monthStart, nameOf, textOf } from './proof-rows.js';
import type { ProofRow, ProofSeries } from './proof-rows.js';
import type { ProofRun, ProofWorld, PublishedSeries } from './proof-world.js';
import type { TimedArchive } from './timed-archive.js';

/** From the end of a period until it must be published. */
const DUE_DAYS = { daily: 2, monthly: 10 };
/** The end of all datasets of a symbol is a delisting after this many days; before, it may be a delay of publication. */
const PROVEN_DAYS = 14;

interface Order {
  readonly symbols: Set<string>;
  first: number;
  last: number | undefined;
}

/** The differences of one world from the truth; empty if there are none. */
export async function tryWorld(world: ProofWorld, archive: TimedArchive, lake: string): Promise<string[]> {
  const problems: string[] = [];
  archive.replaceAll(
    new Map(
      world.published.flatMap(({ objects }) => objects.map(({ key, publications }) => [key, publications])),
    ),
  );
  const order: Order = { symbols: new Set(), first: Infinity, last: undefined };
  /** The days that earlier runs asked for and did not get: they are compared again less and less often. */
  const asked = new Set<string>();
  /** The day of the last run that asked for a symbol: later ones cannot have proven its end. */
  const askedOn = new Map<string, number>();
  // The kept listing is enough for a run of which no month has ended.
  const hasDays = world.published.some(({ series }) => world.ordered(series) && isDaily(series));
  for (const run of world.runs.filter(({ symbols }) => symbols.length > 0)) {
    archive.nowMs = run.nowMs;
    const today = Math.floor(run.nowMs / DAY_MS);
    for (const symbol of run.symbols) {
      order.symbols.add(symbol);
      askedOn.set(symbol, today);
    }
    order.first = Math.min(order.first, run.first ?? Infinity);
    order.last = run.last;
    const at = `${textOf(today)}: `;
    const flags = ['--out', lake, '--now', new Date(run.nowMs).toISOString()];
    const ran = await runOf(run, archive, lake, flags);
    const isWhole = run.accident === undefined || ran.code === 0;
    if (run.accident === undefined ? ran.code !== 0 : ran.code === 0 && run.accident === 'outage' && hasDays)
      problems.push(`${at}vision ended with ${ran.code}: ${ran.stderr}`);
    const checked = await cryptodl(['check', '--json', ...flags]);
    const [verdict = {}] = checked.events;
    const orders = (verdict['orders'] ?? []) as readonly OrderVerdict[];
    const lacking: string[] = [];
    let isSuspected = false;
    let isAvailable = false;
    /** What the series lack by coverage, by layer and symbol. */
    const covered = new Map<string, ReadonlyMap<string, number>>();
    for (const one of world.published) {
      const { series } = one;
      if (!world.ordered(series) || !order.symbols.has(series.symbol)) continue;
      const held = await heldKeys(lake, series);
      const range = {
        from: order.first,
        to: Math.min(dueEnd(series, run.nowMs), (order.last ?? Infinity) + 1),
      };
      const due = one.rows.filter(({ day }) => day >= range.from && day < range.to);
      const missing = due.filter(({ key }) => !held.has(key));
      if (missing.length > 0) lacking.push(`${nameOf(series)} lacks ${rowsText(missing)}`);
      const isUnproven = (world.lives.get(series.symbol) ?? []).some(
        ({ to }) =>
          to / DAY_MS < range.to &&
          !isProvenEnd(world, series, Math.ceil(to / DAY_MS), askedOn.get(series.symbol) ?? today),
      );
      isSuspected ||= isUnproven;
      // Ids begin anew when a symbol is listed again.
      const rows = new Set(missing.map(({ day, key }) => `${day} ${key}`));
      isAvailable ||= publishedRows(one.objects, run.nowMs).some(({ day, key }) => rows.has(`${day} ${key}`));
      const layer = layerOf(series);
      if (range.to > range.from && !covered.has(layer))
        covered.set(layer, await coverageOf(series, range, flags));
      const lacks = covered.get(layer)?.get(series.symbol) ?? 0;
      // Only a run that asks for a symbol proves its end.
      const isAskedNow = askedOn.get(series.symbol) === today || !hasEnded(world, series, range.to);
      // A run that reached no host has not written its order: check calls the lake incomplete then, and coverage has no such series.
      const isInOrder = orders.some((of) => layerOf(of) === layer && of.symbols.includes(series.symbol));
      if (missing.length > 0 ? lacks === 0 && isInOrder : lacks > 0 && !isUnproven && isAskedNow)
        problems.push(
          `${at}coverage says that ${nameOf(series)} lacks ${lacks}, but it lacks ${missing.length} rows`,
        );
      if (run.symbols.includes(series.symbol) && isWhole)
        problems.push(...notTaken(one, held, { run, order, today, asked }).map((text) => at + text));
    }
    const said = `check says ${JSON.stringify(verdict['verdict'])}, exit ${checked.code}`;
    if (lacking.length > 0 && checked.code === 0) problems.push(`${at}${said}, but ${lacking.join('; ')}`);
    if (lacking.length === 0 && checked.code !== 0 && !isSuspected)
      problems.push(`${at}${said}, but nothing is missing: ${JSON.stringify(verdict['orders'])}`);
    if (checked.code === 4 && isAvailable) problems.push(`${at}${said}, but the archive has missing rows`);
    if (![0, 3, 4].includes(checked.code ?? -1) || (verdict['next'] !== null) !== (checked.code === 3))
      problems.push(`${at}${said}, next ${JSON.stringify(verdict['next'])}`);
    for (const one of orders) {
      const own = one.symbols.filter((symbol) => (covered.get(layerOf(one))?.get(symbol) ?? 0) > 0).length;
      if (own !== one.lacking)
        problems.push(
          `${at}check says that ${one.lacking} series of ${layerOf(one)} lack rows, coverage ${own}`,
        );
    }
  }
  return problems;
}

/** Whether the archive had days of other symbols at a run, right after the end of this one and long enough after it: publication did not stall then. */
function isProvenEnd(
  { published }: ProofWorld,
  { symbol }: ProofSeries,
  end: number,
  today: number,
): boolean {
  const days = published
    .filter(({ series }) => series.symbol !== symbol)
    .flatMap(({ objects }) => objects)
    .filter(
      ({ from, to, publications: [first] }) => to - from === 1 && (first?.atMs ?? Infinity) < today * DAY_MS,
    );
  return days.some(({ from }) => from === end) && days.some(({ from }) => from >= end + PROVEN_DAYS - 1);
}

function hasEnded({ lives }: ProofWorld, { symbol }: ProofSeries, day: number): boolean {
  return (lives.get(symbol) ?? []).some(({ to }) => to / DAY_MS < day);
}

type Layer = Pick<ProofSeries, 'dataset' | 'interval'>;
type OrderVerdict = Layer & { readonly symbols: readonly string[]; readonly lacking: number };

const layerOf = ({ dataset, interval = '' }: Layer): string => `${dataset} ${interval}`;

/** The rows or days that each symbol of a layer lacks by coverage. */
async function coverageOf(
  { dataset, interval }: Layer,
  { from, to }: { readonly from: number; readonly to: number },
  flags: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const layer = ['--dataset', dataset, ...(interval === undefined ? [] : ['--interval', interval])];
  const range = ['--from', textOf(from), '--to', textOf(to - 1)];
  const { events } = await cryptodl(['coverage', '--json', ...layer, ...range, ...flags]);
  const series = events.filter(({ event }) => event === 'series');
  return new Map(series.map(({ symbol, missing }) => [String(symbol), Number(missing)]));
}

/** The run with its accident. Only a run that is killed is a process of its own. */
async function runOf(
  { accident, words, symbols }: ProofRun,
  archive: TimedArchive,
  lake: string,
  flags: readonly string[],
): Promise<CliResult> {
  const list = `${lake}.txt`;
  if (words.includes('@')) writeFileSync(list, symbols.join('\n'));
  const line = [...words.map((word) => (word === '@' ? `@${list}` : word)), ...flags];
  const args = [...line, '--archive-url', archive.url, '--quiet', ...FAST];
  if (accident === 'outage') args.push('--retries', '0', '--max-wait', '10ms');
  const env = { CRYPTODL_STATE_DIR: `${lake}-state` };
  let requests = 0;
  archive.isDown = () => accident === 'outage';
  try {
    if (typeof accident !== 'object') return await cryptodl(args, { env });
    return await cryptodlProcess(args, {
      env,
      onSpawn: (child) => {
        archive.isDown = () => {
          requests += 1;
          return requests >= accident.killedAfter && child.kill('SIGKILL');
        };
      },
    });
  } finally {
    archive.isDown = () => false;
  }
}

/** The rows that the archive has at the time of the last run, that the runs have ordered, and that the lake lacks. */
export async function lackingAtEnd(world: ProofWorld, lake: string): Promise<string[]> {
  const runs = world.runs.filter(({ symbols }) => symbols.length > 0);
  const last = runs.at(-1);
  if (last === undefined) return [];
  const first = Math.min(...runs.map((run) => run.first ?? Infinity));
  const lacking: string[] = [];
  for (const { series, objects } of world.published) {
    if (!world.ordered(series) || !last.symbols.includes(series.symbol)) continue;
    const held = await heldKeys(lake, series);
    const rows = publishedRows(objects, last.nowMs).filter(({ key, day }) => day >= first && !held.has(key));
    if (rows.length > 0) lacking.push(`at the end ${nameOf(series)} lacks ${rowsText(rows)}`);
  }
  return lacking;
}

/** The day after the last one that must be published by now. */
function dueEnd(series: ProofSeries, nowMs: number): number {
  if (!isMonthly(series)) return Math.floor(nowMs / DAY_MS) - DUE_DAYS.daily;
  return monthStart(monthOf(nowMs / DAY_MS - DUE_DAYS.monthly));
}

interface Asked {
  readonly run: {
    readonly nowMs: number;
    readonly first: number | undefined;
    readonly last: number | undefined;
  };
  readonly order: Order;
  readonly today: number;
  readonly asked: Set<string>;
}

/** Rows that the archive had at the time of the run, on days that the run or its order asks for. */
function notTaken(
  { series, objects, rows }: PublishedSeries,
  held: ReadonlySet<number>,
  { run, order, today, asked }: Asked,
): string[] {
  const first = order.first;
  const last = Math.min(today - 1, order.last ?? Infinity);
  // A month is held by its object or by its days. Its object stays while the archive lacks a day of which it has rows.
  const daily = objects.filter(({ from, to }) => to - from === 1);
  const listed = new Set(
    daily.filter(({ publications: [one] }) => (one?.atMs ?? Infinity) <= run.nowMs).map(({ from }) => from),
  );
  const months = new Set(
    rows.filter(({ key, day }) => held.has(key) && !listed.has(day)).map(({ day }) => monthOf(day)),
  );
  const isOfWholeMonth = (day: number): boolean => daily.length > 0 && months.has(monthOf(day));
  const lacking = publishedRows(objects, run.nowMs).filter(
    ({ key, day }) => day >= first && day <= last && !held.has(key) && !isOfWholeMonth(day),
  );
  const lost = lacking.filter(
    ({ day }) => day >= (run.first ?? first) || !asked.has(`${nameOf(series)} ${day}`),
  );
  for (const { key, day } of rows)
    if (day >= first && day <= last && !held.has(key)) asked.add(`${nameOf(series)} ${day}`);
  return lost.length === 0 ? [] : [`the run has not taken ${rowsText(lost)} of ${nameOf(series)}`];
}

/** The rows that the archive has at a time. */
function publishedRows(objects: PublishedSeries['objects'], nowMs: number): ProofRow[] {
  const there = new Map<number, ProofRow>();
  const now = objects.flatMap((object) => {
    const published = object.publications.findLast(({ atMs }) => atMs <= nowMs);
    return published === undefined ? [] : { ...object, rows: published.rows };
  });
  const dailyMonths = new Set(now.filter(({ from, to }) => to - from === 1).map(({ from }) => monthOf(from)));
  for (const { from, to, rows } of now) {
    // A month that the archive has by days is held by its days. Only `repair` takes the monthly object for days that are holes.
    if (to - from > 1 && dailyMonths.has(monthOf(from))) continue;
    for (const row of rows) there.set(row.key, row);
  }
  return [...there.values()];
}

function rowsText(rows: readonly ProofRow[]): string {
  const days = [...new Set(rows.map(({ day }) => textOf(day)))];
  return `${rows.length} rows of ${days.slice(0, 4).join(' ')}${days.length > 4 ? ` … ${days.at(-1) ?? ''}` : ''}`;
}

/** The identities of the rows of a series in a lake of CSV or Parquet files. */
async function heldKeys(lake: string, series: ProofSeries): Promise<ReadonlySet<number>> {
  const { market, dataset, interval, symbol } = series;
  const layer = interval === undefined ? [] : [`interval=${interval}`];
  const folder = join(lake, 'binance', market, dataset, ...layer, `symbol=${symbol}`);
  const keys = new Set<number>();
  if (!existsSync(folder)) return keys;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (name.endsWith('.csv'))
      for (const line of readFileSync(path, 'utf8').trimEnd().split('\n').slice(1))
        keys.add(keyOf(series, Number(line.slice(0, line.indexOf(',')))));
    else
      for (const row of await readParquet(path)) {
        const [value] = Object.values(row);
        keys.add(keyOf(series, value instanceof Date ? value.getTime() * 1000 : Number(value)));
      }
  }
  return keys;
}

/** Settlements are identified by their minute, other rows by their time or id. */
function keyOf({ dataset }: ProofSeries, value: number): number {
  if (dataset === 'trades' || dataset === 'aggTrades') return value;
  return dataset === 'fundingRate' ? Math.round(value / 60_000_000) * 60_000 : value / 1000;
}
