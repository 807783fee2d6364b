/**
 * Random archives: which symbols traded when, what was published of it, cut, late, twice or never, and the runs that fill a lake of it.
 * A seed gives the same world every time.
 */
import {
  csvOf,
  DAY_MS,
  exchangeRows,
  hasMonths,
  isDaily,
  monthOf,
  monthStart,
  nameOf,
  textOf,
} from './proof-rows.js';
import type { Life, ProofRow, ProofSeries } from './proof-rows.js';
import { randoms } from './randoms.js';
import type { Revision } from './timed-archive.js';

/** A revision with the rows that it adds to the archive. */
interface Publication extends Revision {
  readonly rows: readonly ProofRow[];
}

/** One object: a day or a month, by the first day. */
interface ProofObject {
  readonly key: string;
  readonly from: number;
  readonly to: number;
  readonly publications: readonly Publication[];
}

export interface PublishedSeries {
  readonly series: ProofSeries;
  readonly rows: readonly ProofRow[];
  readonly objects: readonly ProofObject[];
}

/** What goes wrong in a run: all requests fail, or the process is killed after so many requests. */
type Accident = 'outage' | { readonly killedAfter: number };

/** A call of `vision`. `first` and `last`: the days of its range. The word `@` stands for a file with its symbols. */
export interface ProofRun {
  readonly nowMs: number;
  readonly accident?: Accident;
  readonly words: readonly string[];
  readonly symbols: readonly string[];
  readonly first: number | undefined;
  readonly last: number | undefined;
}

export interface ProofWorld {
  readonly seed: number;
  readonly lives: ReadonlyMap<string, readonly Life[]>;
  readonly published: readonly PublishedSeries[];
  /** The series that the runs ask for; the archive has others of the same symbols. */
  readonly ordered: (series: ProofSeries) => boolean;
  readonly runs: readonly ProofRun[];
  /** What is odd in this world, in words. */
  readonly story: readonly string[];
}

/** Publication is at 07:30, runs are at 12:00. */
const PUBLISHED_MS = 7.5 * 3_600_000;
const RUN_MS = 12 * 3_600_000;
const MONTH_LATE_DAYS = 2;
const FUTURES = [
  'klines 1h',
  'klines 8h',
  'klines 1d',
  'klines 3d',
  'klines 1w',
  'markPriceKlines 8h',
  'aggTrades',
  'trades',
  'metrics',
  'fundingRate',
];
const SPOT = ['klines 1h', 'klines 8h', 'klines 1d', 'klines 1w', 'aggTrades', 'trades'];
/** Always published, and not always asked for: they show that a symbol goes on. */
const WITNESS = 'klines 1d';
/** Published by month alone. */
const COARSE: ReadonlySet<string> = new Set(['klines 3d', 'klines 1w', 'fundingRate']);
/** Published where no other series than the witness tells days: one series alone proves no start and no end of a symbol. */
const OTHER = 'klines 1h';

class Draw {
  readonly #random: () => number;
  constructor(seed: number) {
    this.#random = randoms(Math.imul(seed + 1, 2_654_435_761));
    // The first numbers of neighbouring seeds are alike.
    for (let skipped = 0; skipped < 10; skipped += 1) this.#random();
  }
  chance(share: number): boolean {
    return this.#random() < share;
  }
  /** A whole number `[from, to]`. */
  between(from: number, to: number): number {
    return from + Math.floor(this.#random() * (to - from + 1));
  }
  one<T>(of: readonly [T, ...T[]] | readonly T[]): T {
    const found = of[this.between(0, of.length - 1)];
    if (found === undefined) throw new Error('nothing to draw from');
    return found;
  }
  some<T>(of: readonly T[], count: number): T[] {
    const left = [...of];
    const taken: T[] = [];
    while (taken.length < count && left.length > 0)
      taken.push(...left.splice(this.between(0, left.length - 1), 1));
    return taken;
  }
  number = (): number => this.#random();
}

/** Days on which no object of some series is published before `until`. */
interface Stall {
  readonly from: number;
  readonly to: number;
  readonly until: number;
  readonly isOf: (series: ProofSeries) => boolean;
}

/** `makeRuns`: by default, a few runs with long pauses. `mostLateDays`: between the usual and the real publication. */
export function worldOf(seed: number, makeRuns = runsOf, mostLateDays = 40): ProofWorld {
  const draw = new Draw(seed);
  const story: string[] = [];
  const market = draw.chance(0.75) ? 'um' : 'spot';
  const start = Date.UTC(2023, 1, 1) / DAY_MS + draw.between(0, 1150);
  const length = draw.between(20, draw.chance(0.2) ? 75 : 40);
  const end = start + length;
  const symbols = ['AUSDT', 'BUSDT', 'CUSDT', 'DUSDT'].slice(0, draw.between(2, 3));
  const lives = livesOf(draw, symbols, { start, end }, story);
  const [first = '', second = ''] = draw.some(market === 'um' ? FUTURES : SPOT, 2);
  // A call combines each of its datasets with each of its intervals.
  const isProduct =
    first.includes(' ') && second.includes(' ') && first.split(' ')[0] !== second.split(' ')[0];
  const layers = isProduct || draw.chance(0.6) ? [first] : [first, second];
  const isAlone = layers.includes(WITNESS) && layers.every((layer) => layer === WITNESS || COARSE.has(layer));
  const all = [...new Set([...layers, WITNESS, ...(isAlone ? [OTHER] : [])])].flatMap((layer) => {
    const [dataset = '', interval] = layer.split(' ');
    return symbols.map((symbol): ProofSeries => ({
      market,
      dataset,
      symbol,
      ...(interval === undefined ? {} : { interval }),
    }));
  });
  const ordered = (series: ProofSeries): boolean => layers.includes(nameOf({ ...series, symbol: '' }).trim());
  const runs = makeRuns(draw, { layers, symbols, start, end, market, lives });
  const history = { from: start - draw.between(0, 20), to: (runs.at(-1)?.nowMs ?? 0) / DAY_MS };
  const stalls = stallsOf(draw, { symbols, layers: [...layers, WITNESS], start, end, lives }, story);
  const published = all.map((series) => {
    const rows = exchangeRows(
      series,
      lives.get(series.symbol) ?? [],
      { from: history.from, to: Math.ceil(history.to) + 1 },
      draw.number,
    );
    const isOdd = ordered(series);
    return {
      series,
      rows,
      objects: objectsOf(
        draw,
        series,
        rows,
        { stalls, isOdd, start, end, mostLateDays, lives: lives.get(series.symbol) ?? [] },
        story,
      ),
    };
  });
  const known = runs.map((run) =>
    onlyListed(
      run,
      published.filter(({ series }) => ordered(series)),
    ),
  );
  story.push(
    ...known.map(
      ({ nowMs, words, symbols: own, accident }) =>
        `${textOf(nowMs / DAY_MS)}: ${words.join(' ')} ${own.join()} ${JSON.stringify(accident ?? '')}`,
    ),
  );
  return { seed, lives, published, ordered, runs: known, story };
}

/** The run with the symbols of which the archive has an object of each dataset by then: others are wrong names. */
function onlyListed(run: ProofRun, published: readonly PublishedSeries[]): ProofRun {
  const isListed = ({ objects }: PublishedSeries): boolean =>
    objects.some(({ publications: [first] }) => first !== undefined && first.atMs <= run.nowMs);
  const symbols = run.symbols.filter((symbol) =>
    published.filter(({ series }) => series.symbol === symbol).every(isListed),
  );
  const words = run.words.map((word) => (word === run.symbols.join(',') ? symbols.join(',') : word));
  return { ...run, symbols, words };
}

function livesOf(
  draw: Draw,
  symbols: readonly string[],
  { start, end }: { readonly start: number; readonly end: number },
  story: string[],
): Map<string, readonly Life[]> {
  const HOUR = 3_600_000;
  const at = (day: number): number => day * DAY_MS + draw.one([0, 8, 16]) * HOUR;
  const lives = new Map<string, readonly Life[]>();
  for (const [index, symbol] of symbols.entries()) {
    const whole = { from: 0, to: Infinity };
    // The first symbol trades throughout, so that the market goes on.
    const fate = index === 0 ? 'whole' : draw.one(['whole', 'whole', 'whole', 'listed', 'delisted', 'twice']);
    if (fate === 'listed') lives.set(symbol, [{ ...whole, from: at(draw.between(start + 2, end - 10)) }]);
    else if (fate === 'delisted') lives.set(symbol, [{ ...whole, to: at(draw.between(start + 5, end)) }]);
    else if (fate === 'twice' && end - start > 60) {
      const gone = at(draw.between(start + 2, start + 10));
      lives.set(symbol, [
        { from: 0, to: gone },
        { from: at(draw.between(gone / DAY_MS + 36, end - 5)), to: Infinity },
      ]);
    } else lives.set(symbol, [whole]);
    const texts = (lives.get(symbol) ?? []).map(({ from, to }) => `${instant(from)} … ${instant(to)}`);
    if (texts.join() !== ' … ') story.push(`${symbol} traded ${texts.join(' and ')}`);
  }
  return lives;
}

function instant(ms: number): string {
  return ms === 0 || ms === Infinity ? '' : new Date(ms).toISOString().slice(0, 16);
}

interface RunFacts {
  readonly layers: readonly string[];
  readonly symbols: readonly string[];
  readonly start: number;
  readonly end: number;
  readonly market: string;
  readonly lives: ReadonlyMap<string, readonly Life[]>;
}

function runsOf(draw: Draw, { layers, symbols, start, end, market, lives }: RunFacts): ProofRun[] {
  const datasets = [...new Set(layers.map((layer) => layer.split(' ')[0] ?? ''))];
  const intervals = [...new Set(layers.flatMap((layer) => layer.split(' ').slice(1)))];
  const format = draw.chance(0.8) ? 'csv' : 'parquet';
  const first = start + draw.between(0, 6);
  const count = draw.between(1, 3);
  const days = [
    ...Array.from({ length: count - 1 }, () => draw.between(first + 8, end + 15)),
    end + draw.between(3, 30),
  ].sort((a, b) => a - b);
  const isClosed = draw.chance(0.15);
  const last = isClosed ? end - draw.between(1, 5) : undefined;
  const weekly = draw.chance(0.5);
  const runs = days.map((day, index): ProofRun => {
    const listed = symbols.filter((symbol) => (lives.get(symbol)?.[0]?.from ?? 0) < (day - 3) * DAY_MS);
    const range =
      last !== undefined
        ? { words: ['--from', textOf(first), '--to', textOf(last)], first, last }
        : index > 0 && weekly
          ? { words: ['--days', '7'], first: day - 7, last: undefined }
          : { words: ['--from', textOf(first)], first, last: undefined };
    const own = draw.chance(0.2) && index < count - 1 ? listed.slice(0, 1) : listed;
    const words = [
      'vision',
      '--market',
      market,
      '--dataset',
      datasets.join(','),
      ...(intervals.length === 0 ? [] : ['--interval', intervals.join(',')]),
      '--symbols',
      own.join(','),
      '--format',
      format,
      ...range.words,
    ];
    return { nowMs: day * DAY_MS + RUN_MS, words, symbols: own, first: range.first, last: range.last };
  });
  return runs;
}

/** The recipe of the README each day, with the accidents of a month. */
export function cronRuns(days: number): typeof runsOf {
  return (draw, { layers, symbols, start, market, lives }) => {
    const datasets = [...new Set(layers.map((layer) => layer.split(' ')[0] ?? ''))];
    const intervals = [...new Set(layers.flatMap((layer) => layer.split(' ').slice(1)))];
    const format = draw.chance(0.8) ? 'csv' : 'parquet';
    const begin = start + 8;
    // The last days are without accidents.
    const end = days - Math.ceil(days / 4);
    const outageDays = draw.between(1, Math.min(14, end - 2));
    const outage = { from: begin + draw.between(1, end - outageDays), days: outageDays };
    const added = new Map(symbols.map((name, index) => [name, index === 0 ? 0 : draw.between(-days, end)]));
    return Array.from({ length: days }, (_, index) => index).flatMap((index): ProofRun[] => {
      const day = begin + index;
      const known = symbols.filter(
        (name) => (added.get(name) ?? 0) <= index && (lives.get(name)?.[0]?.from ?? 0) < (day - 3) * DAY_MS,
      );
      const isDown = day >= outage.from && day < outage.from + outage.days;
      const accident = isDown
        ? { accident: 'outage' as const }
        : index > 0 && index < end && draw.chance(0.12)
          ? { accident: { killedAfter: draw.between(1, 25) } }
          : {};
      // Cron does not run on some days.
      if (index > 0 && index < end && draw.chance(0.1)) return [];
      const layer = intervals.length === 0 ? [] : ['--interval', intervals.join(',')];
      const what = ['--market', market, '--dataset', datasets.join(','), ...layer, '--symbols', '@'];
      const words = ['vision', ...what, '--days', '7', '--format', format];
      return [
        { nowMs: day * DAY_MS + RUN_MS, words, symbols: known, first: day - 7, last: undefined, ...accident },
      ];
    });
  };
}

function stallsOf(
  draw: Draw,
  { symbols, layers, start, end, lives }: Omit<RunFacts, 'market'>,
  story: string[],
): Stall[] {
  if (draw.chance(0.65)) return [];
  const from = draw.between(start, end);
  const to = from + draw.between(2, 30);
  const until = draw.chance(0.3) ? Infinity : to + draw.between(0, 20);
  const symbol = draw.one(symbols);
  const layer = draw.one(layers);
  const isOfLayer = (series: ProofSeries): boolean => nameOf({ ...series, symbol: '' }).trim() === layer;
  const drawn = draw.one(['series', 'dataset', 'all'] as const);
  // Nothing tells a symbol without any object for weeks from a suspended one.
  const scope = drawn === 'series' && layer === WITNESS ? 'dataset' : drawn;
  const ends = [...lives.values()].flat().flatMap((life) => [life.from / DAY_MS, life.to / DAY_MS]);
  // Nothing else may tell the first or the last day of a symbol.
  if (scope === 'dataset' && layer === WITNESS && ends.some((at) => at >= from && at <= to)) return [];
  story.push(
    `publication of ${scope === 'all' ? 'all' : scope === 'dataset' ? layer : `${layer} ${symbol}`} stalls from ${textOf(from)} to ${textOf(to)}, until ${until === Infinity ? 'the end' : textOf(until)}`,
  );
  return [
    {
      from,
      to,
      until,
      isOf: (series) =>
        scope === 'all' || (isOfLayer(series) && (scope === 'dataset' || series.symbol === symbol)),
    },
  ];
}

interface OddFacts {
  readonly stalls: readonly Stall[];
  /** Whether its objects have faults of their own. */
  readonly isOdd: boolean;
  readonly mostLateDays: number;
  readonly start: number;
  readonly end: number;
  readonly lives: readonly Life[];
}

function objectsOf(
  draw: Draw,
  series: ProofSeries,
  rows: readonly ProofRow[],
  facts: OddFacts,
  story: string[],
): ProofObject[] {
  const days = new Map<number, ProofRow[]>();
  const months = new Map<string, ProofRow[]>();
  for (const row of rows) {
    (days.get(row.day) ?? days.set(row.day, []).get(row.day))?.push(row);
    const month = monthOf(row.day);
    (months.get(month) ?? months.set(month, []).get(month))?.push(row);
  }
  const objects: ProofObject[] = [];
  const odd = facts.isOdd && draw.chance(0.6) ? draw.one([0.01, 0.03, 0.08]) : 0;
  if (isDaily(series))
    for (const [day, own] of days) {
      const publications = revisionsOf(
        draw,
        series,
        own,
        { from: day, to: day + 1, lateDays: 0, odd },
        facts,
        story,
      );
      objects.push({ key: keyOf(series, textOf(day)), from: day, to: day + 1, publications });
    }
  if (hasMonths(series))
    for (const [month, own] of months) {
      const [from, to] = [monthStart(month), monthStart(month, 1)];
      const share = odd === 0 ? 0 : 0.3;
      const publications = revisionsOf(
        draw,
        series,
        own,
        { from, to, lateDays: MONTH_LATE_DAYS, odd: share },
        facts,
        story,
      );
      objects.push({ key: keyOf(series, month), from, to, publications });
    }
  return objects;
}

function keyOf({ market, dataset, interval, symbol }: ProofSeries, period: string): string {
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  const folder = market === 'spot' ? 'spot' : 'futures/um';
  const layer = interval === undefined ? '' : `${interval}/`;
  return `data/${folder}/${cadence}/${dataset}/${symbol}/${layer}${symbol}-${interval ?? dataset}-${period}.zip`;
}

interface Period {
  readonly from: number;
  readonly to: number;
  readonly lateDays: number;
  readonly odd: number;
}

function revisionsOf(
  draw: Draw,
  series: ProofSeries,
  rows: readonly ProofRow[],
  { from, to, lateDays, odd }: Period,
  { stalls, start, end, mostLateDays, lives }: OddFacts,
  story: string[],
): Publication[] {
  const isLong = to - from > 1;
  const stall = stalls.find(
    (one) => one.isOf(series) && one.from < to && from < one.to && (!isLong || to <= one.to + 20),
  );
  const usual = to + lateDays;
  let at = stall === undefined ? usual : Math.max(usual, stall.until + lateDays);
  if (at === Infinity) return [];
  const make = (day: number, own: readonly ProofRow[], isDoubled = false): Publication => ({
    atMs: day * DAY_MS + PUBLISHED_MS,
    rows: own,
    csv: () => csvOf(series, isDoubled ? own.flatMap((row) => [row, row]) : own),
  });
  if (from < start || from > end || !draw.chance(odd)) return [make(at, rows)];
  const name = `${nameOf(series)} ${isLong ? monthOf(from) : textOf(from)}`;
  const fault = draw.one(['hole', 'late', 'late', 'cut', 'cut', 'cut', 'doubled'] as const);
  switch (fault) {
    case 'hole':
      story.push(`${name} is never published`);
      return [];
    case 'late':
      at += draw.between(1, mostLateDays);
      story.push(`${name} is published on ${textOf(at)}`);
      return [make(at, rows)];
    case 'doubled':
      story.push(`${name} has each row twice`);
      return [make(at, rows, true)];
    case 'cut': {
      const short = cutOf(draw, rows);
      if (short === undefined) return [make(at, rows)];
      const again = draw.chance(0.6) ? at + draw.between(1, mostLateDays) : undefined;
      // The days of a month take its place if it lacks whole ones.
      const isInDays = isLong && isDaily(series) && dayCount(short) === dayCount(rows);
      // Where the interval of settlements changes, nothing tells how many of them are cut.
      const hours = new Set(rows.map(({ line }) => line.split(',')[1]));
      const isMixed = series.dataset === 'fundingRate' && hours.size > 1;
      if (isInDays || isMixed || isUntold(rows, short, lives)) return [make(at, rows)];
      story.push(
        `${name} has ${short.length} of ${rows.length} rows on ${textOf(at)}${again === undefined ? '' : `, all on ${textOf(again)}`}`,
      );
      return [make(at, short), ...(again === undefined ? [] : [make(again, rows)])];
    }
  }
}

const dayCount = (rows: readonly ProofRow[]): number => new Set(rows.map(({ day }) => day)).size;

/** Without rows at the start, in the middle or at the end; at least a fourth of them. Undefined for less than two rows. */
function cutOf(draw: Draw, rows: readonly ProofRow[]): ProofRow[] | undefined {
  if (rows.length < 2) return undefined;
  const count = Math.min(
    rows.length - 1,
    Math.max(1, Math.floor(rows.length * (0.25 + draw.number() * 0.5))),
  );
  const at = draw.one([0, rows.length - count, draw.between(0, rows.length - count)]);
  return rows.filter((_, index) => index < at || index >= at + count);
}

/** Whether only rows at the outer edge of the first or last day of a symbol are cut: its rows begin and end at any hour, and nothing else tells it. */
function isUntold(rows: readonly ProofRow[], short: readonly ProofRow[], lives: readonly Life[]): boolean {
  const left = new Set(short);
  const cut = rows.filter((row) => !left.has(row));
  const days = new Set(cut.map(({ day }) => day));
  const [day = 0] = days;
  const ofDay = rows.filter((row) => row.day === day);
  return (
    days.size === 1 &&
    lives.some(
      ({ from, to }) =>
        (day === Math.floor(from / DAY_MS) && ofDay[0] === cut[0]) ||
        (day === Math.floor((to - 1) / DAY_MS) && ofDay.at(-1) === cut.at(-1)),
    )
  );
}
