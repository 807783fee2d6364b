/** Makes lakes with records of runs and failures, for the tests of `cryptodl report`. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { klinesFolder, klinesLine, SETTINGS, writeManifest } from '../../scripts/synthetic-lake.js';
import type { RunRecord } from '../../src/run/monitor/run-record.js';
import { LATENCY_BOUNDS_S } from '../../src/run/report/figures.js';

const DAY_MS = 86_400_000;

/** Numbers that look random and are the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

/** The days before `end`, as text. */
export function daysBefore(end: string, count: number): string[] {
  const endMs = Date.parse(end);
  return Array.from({ length: count }, (_, at) =>
    new Date(endMs - (count - at) * DAY_MS).toISOString().slice(0, 10),
  );
}

const gap = (day: string, hour: number, minutes: number): [string, string] => {
  const from = Date.parse(day) + hour * 3_600_000;
  return [new Date(from).toISOString(), new Date(from + minutes * 60_000).toISOString()];
};

/** Series with late first days, missing weeks and lost minutes. */
export function makeSeries(lake: string, symbols: readonly string[], days: readonly string[]): void {
  const random = numbers(7);
  for (const [index, symbol] of symbols.entries()) {
    const first = index % 3 === 0 ? 0 : Math.floor(random() * days.length * 0.5);
    const hole = first + Math.floor(random() * (days.length - first));
    const lost = Math.floor(random() * 9);
    const lines: object[] = [];
    for (const [at, day] of days.entries()) {
      if (at < first || (at >= hole && at < hole + lost)) continue;
      const minutes = random() < 0.03 ? 1 + Math.floor(random() * 1300) : 0;
      lines.push(
        klinesLine(symbol, day, minutes === 0 ? {} : { rows: 1440 - minutes, gaps: [gap(day, 1, minutes)] }),
      );
    }
    const at = '2026-11-20T00:00:00.000Z';
    if (index % 4 === 1)
      lines.push({
        v: 1,
        kind: 'absent',
        cadence: 'daily',
        first: days[hole],
        last: days[hole],
        reason: 'hole',
        asked: 1,
        at,
        tool: 'test',
      });
    writeManifest(klinesFolder(lake, symbol), lines);
  }
}

/** A record of a run of ten minutes that began at this time. */
export function runRecord(
  startedMs: number,
  changes: {
    readonly failed?: number;
    readonly reasons?: Record<string, number>;
    readonly failures?: string;
  } = {},
): RunRecord {
  const random = numbers(startedMs % 1_000_000);
  const {
    failed = 0,
    reasons = { 'http-server-error': 12, timeout: 5, 'connect-failed': 2 },
    failures = null,
  } = changes;
  const retries = Object.values(reasons).reduce((sum, count) => sum + count, 0);
  const points = Array.from({ length: 120 }, (_, at) => ({
    atMs: (at + 1) * 5000,
    objects: Math.round(40 + 25 * random()),
    bytes: Math.round(4e6 * (1 + random())),
    attempts: 70,
    failed: random() < 0.1 ? 1 : 0,
    retries: random() < 0.1 ? 1 : 0,
    latency: LATENCY_BOUNDS_S.map((bound) =>
      bound < 0.3 ? Math.round(20 * random()) : bound < 2 && random() < 0.3 ? 1 : 0,
    ).concat(0),
    inFlight: Math.round(Math.min(32, at + 6) * (0.8 + 0.2 * random())),
    concurrency: Math.min(32, at + 8),
    writing: 2,
    toWrite: Math.round(4 * random()),
  }));
  const elapsedMs = Math.round(600_000 * (0.8 + 0.5 * random()));
  const percentiles = { p50: 48, p95: 210, p99: 900 };
  const id = `${new Date(startedMs).toISOString().replaceAll(/[-:.]/g, '')}-0a1b2c3d`;
  return {
    v: 1,
    id,
    verb: 'vision',
    tool: 'cryptodl 0.1.0',
    node: '22.12.0',
    platform: 'linux x64',
    startedAt: new Date(startedMs).toISOString(),
    endedAt: new Date(startedMs + elapsedMs).toISOString(),
    options: { symbols: ['BTCUSDT', 'ETHUSDT'], interval: ['1m'], days: ['7'] },
    summary: {
      outcomes: { ok: 6200 - failed, partial: 0, skipped: 410, absent: 38, failed },
      absent: { hole: 3, 'not-listed-yet': 35 },
      failed: failed === 0 ? {} : { 'http-not-found': failed },
      undone: 0,
      bytes: 7.1e8,
      rows: 8_900_000,
      files: 220,
      requests: 6400,
      changed: Math.round(random() * 0.8),
      withdrawn: 0,
      shorter: 0,
      elapsedMs,
      peakMemoryBytes: 3.1e8,
      failures,
      datasets: [
        {
          market: 'um',
          dataset: 'klines',
          outcomes: { ok: 6200, partial: 0, skipped: 410, absent: 38, failed },
          holes: 3,
          days: { held: 60, missing: 5 },
          rows: 8_900_000,
          bytes: 7.1e8,
          newest: new Date(startedMs - DAY_MS).toISOString().slice(0, 10),
          newestEndMs: startedMs - (startedMs % DAY_MS),
          unpublished: null,
          unpublishedEndMs: null,
          freshUntilMs: startedMs - (startedMs % DAY_MS) + 3 * DAY_MS,
          publicationDelayMs: Math.round(27_000_000 + 4_000_000 * random()),
        },
      ],
      network: {
        retries: {
          total: retries,
          requests: retries,
          succeeded: Math.max(0, retries - failed),
          ...percentiles,
          reasons,
        },
        attemptMs: percentiles,
        errors: reasons,
        hosts: {
          'data.binance.vision': {
            statuses: { '200': 6390, '503': 12, '404': 8 },
            attemptMs: percentiles,
            breaker: 'closed',
          },
        },
        mostInFlight: 32,
        concurrency: 32,
        limiter: { waits: 20, waitedMs: 900, refusals: 0 },
      },
      alerts: [],
      exitCode: failed === 0 ? 0 : 4,
    },
    timeline: { boundsS: [...LATENCY_BOUNDS_S], points },
  };
}

export function writeRecord(lake: string, record: RunRecord): void {
  const folder = join(lake, '.cryptodl/runs');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${record.id}.json`), `${JSON.stringify(record)}\n`);
}

/** Resolves with the path of a failure report with these messages, one failure each. */
export function writeFailures(lake: string, messages: readonly string[]): string {
  const at = '2026-11-20T08:00:00.000Z';
  const header = { v: 1, kind: 'header', verb: 'vision', tool: 'test', at, options: { out: [lake] } };
  const failed = messages.map((message, index) => ({
    v: 1,
    kind: 'failed',
    market: 'um',
    dataset: 'klines',
    interval: '1m',
    symbol: `F${String(index).padStart(4, '0')}USDT`,
    cadence: 'daily',
    period: '2026-11-19',
    key: `data/futures/um/daily/klines/F${index}USDT/1m/F${index}USDT-1m-2026-11-19.zip`,
    code: index % 3 === 0 ? 'timeout' : 'http-not-found',
    retryable: index % 3 === 0,
    attempts: 1 + (index % 5),
    message,
    at,
    settings: SETTINGS,
  }));
  mkdirSync(join(lake, '_failures'), { recursive: true });
  const path = join(lake, '_failures/vision-20261120T080000000Z.jsonl');
  writeFileSync(path, [header, ...failed].map((line) => `${JSON.stringify(line)}\n`).join(''));
  return path;
}

/** Series of monthly objects, each with two gaps: a lake of many days in few lines. */
export function makeMonths(lake: string, series: number, months: number): void {
  const random = numbers(11);
  for (let index = 0; index < series; index += 1) {
    const symbol = `M${String(index).padStart(4, '0')}USDT`;
    const lines = Array.from({ length: months }, (_, at) => {
      const [first, end] = [Date.UTC(2018, at, 1), Date.UTC(2018, at + 1, 1)];
      const day = new Date(first + Math.floor(random() * 27) * DAY_MS).toISOString().slice(0, 10);
      const period = new Date(first).toISOString().slice(0, 7);
      const rows = (end - first) / 60_000 - 150;
      return klinesLine(symbol, new Date(first).toISOString().slice(0, 10), {
        key: `data/futures/um/monthly/klines/${symbol}/1m/${symbol}-1m-${period}.zip`,
        cadence: 'monthly',
        period,
        rows,
        last: new Date(end - 60_000).toISOString(),
        gaps: [gap(day, 1, 60), gap(day, 4, 90)],
      });
    });
    writeManifest(klinesFolder(lake, symbol), lines);
  }
}
