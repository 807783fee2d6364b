/** The published history: the objects of the archive on each day, and their rows. */
import { makeZip } from '../../../scripts/make-zip.js';
import { digestOf } from './archive.js';
import type { Bucket } from './archive.js';
import { csvOf, nameOf, rowsOf, textOf } from './rows.js';
import type { Row, Series } from './rows.js';
import { FIRST_PUBLISHED, HALT, HEADER_FROM, isTraded, MICROS_FROM, MONTHLY, SERIES } from './story.js';
import type { Event, Happening } from './story.js';

export type Flaw = 'stale-sidecar' | 'broken-zip' | 'malformed-row';

export interface Publication {
  readonly key: string;
  readonly series: Series;
  readonly day: number;
  readonly rows: readonly Row[];
  readonly etag: string;
  readonly sha256: string;
  readonly zip: Buffer;
  readonly flaw: Flaw | undefined;
}

export function keyOf({ dataset, symbol }: Series, period: string): string {
  const cadence = period.length === 7 ? 'monthly' : 'daily';
  return dataset === 'klines'
    ? `data/futures/um/${cadence}/klines/${symbol}/1h/${symbol}-1h-${period}.zip`
    : `data/futures/um/${cadence}/${dataset}/${symbol}/${symbol}-${dataset}-${period}.zip`;
}

export class World {
  readonly #bucket: Bucket;
  readonly #events: readonly Event[];
  readonly #published = new Map<string, Publication>();
  readonly #revisions = new Map<string, number>();
  #today = 0;

  constructor(bucket: Bucket, events: readonly Event[]) {
    this.#bucket = bucket;
    this.#events = events;
  }

  /** The object of a day that is published by now. */
  of(series: Series, day: number): Publication | undefined {
    return this.#published.get(keyOf(series, textOf(day)));
  }

  /** Rows of the monthly object. */
  monthRows(series: Series): Row[] {
    const rows: Row[] = [];
    for (let day = FIRST_PUBLISHED; textOf(day).startsWith(MONTHLY.month); day += 1) {
      const revision = series.symbol === MONTHLY.differing ? 1000 : 0;
      if (isTraded(series, day)) rows.push(...rowsOf(series, day, revision, { isMicro: false }));
    }
    return rows;
  }

  /** Publishes, revises and withdraws objects before cron runs. */
  morning(today: number): void {
    const isFirst = this.#today === 0;
    this.#today = today;
    for (const series of SERIES) {
      for (let day = isFirst ? FIRST_PUBLISHED : today - 10; day < today; day += 1)
        if (isTraded(series, day) && this.#publicationOf(series, day, isFirst) === today)
          this.#publish(series, day);
    }
    for (const event of this.#events) if (event.on === today) this.#apply(event);
    if (today === MONTHLY.on) this.#publishMonth();
  }

  #publicationOf(series: Series, day: number, isFirst: boolean): number | undefined {
    const late = this.#events.find(
      (event) =>
        (event.what === 'late' || event.what === 'never') &&
        event.day === day &&
        nameOf(event.series) === nameOf(series),
    );
    if (late?.what === 'never') return undefined;
    return late?.on ?? (isFirst ? this.#today : day + 1);
  }

  #apply({ series, day, what }: Event): void {
    const key = keyOf(series, textOf(day));
    const published = this.#published.get(key);
    switch (what) {
      case 'late':
      case 'never':
        return;
      case 'withdrawn':
        this.#published.delete(key);
        this.#bucket.remove(key);
        return;
      case 'sidecar-missing':
      case 'sidecar-right':
      case 'touched':
        if (published === undefined) throw new Error(`${key} is not published`);
        this.#store({ ...published, flaw: undefined }, what === 'sidecar-missing' ? null : published.sha256);
        return;
      case 'revised':
      case 'stale-sidecar':
      case 'broken-zip':
      case 'malformed-row':
      case 'shrunk':
        this.#revisions.set(key, (this.#revisions.get(key) ?? 0) + 1);
        this.#publish(series, day, what);
    }
  }

  #publish(series: Series, day: number, what: Happening = 'revised'): void {
    const key = keyOf(series, textOf(day));
    const shape = {
      isMicro: day >= MICROS_FROM,
      ...(day === HALT.day && series.dataset === 'klines' ? { lacks: HALT.hours } : {}),
    };
    const whole = rowsOf(series, day, this.#revisions.get(key) ?? 0, shape);
    const rows = what === 'shrunk' ? whole.slice(0, Math.floor(whole.length / 4.8)) : whole;
    const csv = csvOf(series.dataset, rows, day >= HEADER_FROM);
    const zip = zipOf(key, what === 'malformed-row' ? malformed(csv) : csv);
    if (what === 'broken-zip') zip.fill(0xff, 60, 70);
    const flaw =
      what === 'stale-sidecar' || what === 'broken-zip' || what === 'malformed-row' ? what : undefined;
    const sha256 = digestOf('sha256', zip);
    const before = this.#published.get(key)?.sha256 ?? digestOf('sha256', Buffer.from(key));
    const publication = { key, series, day, rows, etag: digestOf('md5', zip), sha256, zip, flaw };
    this.#store(publication, what === 'stale-sidecar' ? before : sha256);
    if (series.dataset === 'klines') this.#putDailyBars(key);
  }

  /** Another series begins and ends with the bars of an hour. Cron does not ask for it. */
  #putDailyBars(hourKey: string): void {
    const key = hourKey.replaceAll('1h', '1d');
    const zip = zipOf(key, '');
    this.#bucket.remove(key);
    this.#bucket.put(key, zip, this.#modified());
    this.#bucket.putSidecar(key, digestOf('sha256', zip), this.#modified());
  }

  #store(publication: Publication, sidecar: string | null): void {
    const { key, zip } = publication;
    this.#bucket.remove(key);
    this.#bucket.put(key, zip, this.#modified());
    if (sidecar !== null) this.#bucket.putSidecar(key, sidecar, this.#modified());
    this.#published.set(key, publication);
  }

  #publishMonth(): void {
    for (const series of SERIES) {
      if (series.dataset === 'metrics') continue;
      const key = keyOf(series, MONTHLY.month);
      const zip = zipOf(key, csvOf(series.dataset, this.monthRows(series), true));
      this.#bucket.put(key, zip, this.#modified());
      this.#bucket.putSidecar(key, digestOf('sha256', zip), this.#modified());
    }
  }

  #modified(): string {
    return `${textOf(this.#today)}T07:30:00.000Z`;
  }
}

function zipOf(key: string, csv: string): Buffer {
  const member = `${key.slice(key.lastIndexOf('/') + 1, -'.zip'.length)}.csv`;
  return makeZip([{ name: member, data: csv }]);
}

/** The tenth line has a word where a number must be. */
function malformed(csv: string): string {
  const lines = csv.split('\n');
  lines[9] = (lines[9] ?? '').replace(/,[^,]+,/, ',number,');
  return lines.join('\n');
}
