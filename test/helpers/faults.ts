/**
 * The fault matrix through the real binary: every row is a test whose title is a line of docs/faults.md, with one object
 * of ten as its victim.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { basename, join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from './archive.js';
import type { TestArchive } from './archive.js';
import { cryptodl, FAST } from './cli.js';
import type { CliOptions, CliResult } from './cli.js';
import { scratchFolder } from './folders.js';
import { filesBelow, manifestLines, readParquet } from './lake.js';
import type { LakeRow } from './lake.js';
import type { SidecarOf } from './published.js';

export interface FaultRow {
  /** As the fault matrix has it; several tests may share one. */
  readonly id: string;
  /** What is done to the program. */
  readonly fault: string;
  /** What becomes of it. */
  readonly outcome: string;
  readonly exit: number;
  /** What this machine lacks for the test, which is then skipped under this name. */
  readonly missing?: string | undefined;
}

/** A test of one row. `check` gets the row's exit code, so that title and assertion cannot differ. */
export function fault(row: FaultRow, check: (exit: number) => Promise<void>, timeoutMs = 60_000): void {
  const why = row.missing === undefined ? '' : ` (skipped: ${row.missing})`;
  it(
    `${row.id} ${row.fault} → ${row.outcome}; exit ${row.exit}${why}`,
    (context) => {
      context.skip(row.missing !== undefined);
      expect.hasAssertions();
      return check(row.exit);
    },
    timeoutMs,
  );
}

const SYMBOLS = ['BTCUSDT', 'ETHUSDT'];
const DAYS = ['2026-10-01', '2026-10-02', '2026-10-03', '2026-10-04', '2026-10-05'];

export function keyOf(symbol: string, day: string): string {
  return `data/futures/um/daily/metrics/${symbol}/${symbol}-metrics-${day}.zip`;
}

/** The object that something is done to; the nine others must not suffer. */
export const VICTIM = keyOf('BTCUSDT', '2026-10-03');
export const OBJECTS = SYMBOLS.length * DAYS.length;

type Victimize = (request: IncomingMessage, response: ServerResponse, time: number) => boolean;

export interface FaultScene {
  /** The folder of the archive. It is shared by all tests, so a test that changes it must restore it. */
  readonly folder: string;
  readonly archive: () => TestArchive;
  /** The bytes of an object as they were published. */
  readonly bytesOf: (key: string) => Buffer;
  /** Lets `act` answer requests of this path; it is told how often it was asked (from 1) and returns false to let one pass. */
  readonly onPath: (path: string, act: Victimize) => void;
  /** Until the test is over the archive has this zip under the key, with the sidecar that fits unless told otherwise. */
  readonly publish: (key: string, zip: Buffer, sidecar?: SidecarOf) => void;
  /** Runs `vision` over all ten objects into a new folder (or the given one). */
  readonly run: (flags?: readonly string[], options?: FaultRunOptions) => Promise<FaultRun>;
  /** A run that must end with this exit code. */
  readonly runTo: (exit: number, flags?: readonly string[], options?: FaultRunOptions) => Promise<FaultRun>;
  /** `act` answers the first request of the path. */
  readonly once: (path: string, act: (response: ServerResponse) => void) => void;
  /** The archive answers each request of the path with this status. */
  readonly answer: (
    path: string,
    status: number,
    headers?: OutgoingHttpHeaders,
    body?: string | Buffer,
  ) => void;
  /** `cryptodl retry` of the failure report of a run, with the archive as it is by then. */
  readonly retry: (run: FaultRun, flags?: readonly string[]) => Promise<FaultRun>;
}

interface FaultRunOptions extends CliOptions {
  readonly out?: string;
}

export interface FaultRun extends CliResult {
  readonly out: string;
  /** The last event. */
  readonly summary: Readonly<Record<string, unknown>>;
  /** Why this path was asked again, each time. */
  readonly causesOf: (path: string) => string[];
  /** Wire requests of exactly this path. */
  readonly requestsOf: (path: string) => number;
}

/** To be called within a `describe`. */
export function faultScene(): FaultScene {
  const scratch = scratchFolder();
  const folder = join(scratch, 'archive');
  let archive: TestArchive;
  let runs = 0;
  beforeAll(async () => {
    makeArchive(folder, {
      market: 'um',
      dataset: 'metrics',
      symbols: SYMBOLS,
      from: DAYS[0] ?? '',
      to: DAYS.at(-1) ?? '',
      cadence: 'daily',
    });
    archive = await startArchive(folder);
  });
  afterAll(() => archive.close());
  const published = new Map<string, Buffer | null>();
  const publish: FaultScene['publish'] = (key, zip, sidecar = usualSidecar) => {
    const digest = createHash('sha256').update(zip).digest('hex');
    const text = sidecar(digest, basename(key));
    published.set(`/${key}`, zip).set(`/${key}.CHECKSUM`, text === null ? null : Buffer.from(text));
    archive.fault = (asked, _request, response) => {
      const bytes = published.get(asked);
      if (bytes === undefined) return false;
      response.writeHead(bytes === null ? 404 : 200).end(bytes ?? '');
      return true;
    };
  };
  afterEach(() => {
    archive.fault = undefined;
    published.clear();
  });
  const tried = async (
    out: string,
    args: readonly string[],
    options: FaultRunOptions = {},
  ): Promise<FaultRun> => {
    const from = archive.requests.length;
    const result = await cryptodl(args, options);
    const requests = archive.requests.slice(from);
    return {
      ...result,
      out,
      summary: result.events.at(-1) ?? {},
      causesOf: (path) =>
        result.events
          .filter(({ event, url }) => event === 'retry' && String(url).endsWith(`/${path}`))
          .map((event) => String(event['original_error'])),
      requestsOf: (path) => requests.filter((asked) => asked === `/${path}`).length,
    };
  };
  const onPath: FaultScene['onPath'] = (path, act) => {
    let time = 0;
    archive.fault = (asked, request, response) => {
      if (asked !== `/${path}`) return false;
      time += 1;
      return act(request, response, time);
    };
  };
  const run: FaultScene['run'] = (flags = [], options = {}) => {
    runs += 1;
    const out = options.out ?? join(scratch, `lake-${runs}`);
    return tried(out, [...command(archive.url, out), ...flags], options);
  };
  return {
    folder,
    archive: () => archive,
    bytesOf: (key) => readFileSync(join(folder, key)),
    onPath,
    publish,
    run,
    runTo: async (exit, flags, options) => {
      const ended = await run(flags, options);
      expect(ended.code).toBe(exit);
      return ended;
    },
    once: (path, act) => {
      onPath(path, (_request, response, time) => {
        if (time === 1) act(response);
        return time === 1;
      });
    },
    answer: (path, status, headers = {}, body = '') => {
      onPath(path, (_request, response) => {
        response.writeHead(status, headers).end(body);
        return true;
      });
    },
    retry: ({ out, summary }, flags = []) => {
      archive.fault = undefined;
      return tried(out, ['retry', String(summary['failures']), '--json', ...FAST, ...flags]);
    },
  };
}

const usualSidecar: SidecarOf = (digest, name) => `${digest}  ${name}\n`;

function command(url: string, out: string): string[] {
  const range = ['--from', DAYS[0] ?? '', '--to', DAYS.at(-1) ?? ''];
  const where = ['--archive-url', url, '--out', out];
  return [
    ...'vision --dataset metrics --symbols'.split(' '),
    SYMBOLS.join(','),
    ...range,
    ...where,
    '--json',
    ...FAST,
  ];
}

/** Everything that was published is in the lake, row for row, but for the victim, or the keys, that `without` names. */
export async function expectIntact(
  scene: FaultScene,
  lake: Pick<FaultRun, 'out'>,
  without: 'victim' | readonly string[] = [],
): Promise<void> {
  const expected = await undisturbed(scene);
  const rows = await rowsOf(lake.out);
  const leftOut = without === 'victim' ? [VICTIM] : without;
  const isLeftOut = (row: LakeRow): boolean => leftOut.includes(String(row['day']));
  expect(rows).toEqual(expected.filter((row) => !isLeftOut(row)));
  expect(filesBelow(lake.out).filter((path) => /\.partial|staged|tmp/.test(path))).toEqual([]);
}

const undisturbedRows = new WeakMap<FaultScene, Promise<LakeRow[]>>();

function undisturbed(scene: FaultScene): Promise<LakeRow[]> {
  const known = undisturbedRows.get(scene) ?? readUndisturbed(scene);
  undisturbedRows.set(scene, known);
  return known;
}

async function readUndisturbed(scene: FaultScene): Promise<LakeRow[]> {
  const archive = scene.archive();
  const { fault: disturbance } = archive;
  archive.fault = undefined;
  const { out, code } = await scene.run();
  archive.fault = disturbance;
  expect(code).toBe(0);
  return rowsOf(out);
}

/** All rows with the key of the object that they came from, by what the manifest says of its times. */
async function rowsOf(out: string): Promise<LakeRow[]> {
  const rows: LakeRow[] = [];
  for (const symbol of SYMBOLS) {
    const series = join(out, `binance/um/metrics/symbol=${symbol}`);
    const files = filesBelow(series, '.parquet');
    const keys = new Set(manifestLines(series).map((line) => String(line['key'])));
    for (const file of files) {
      for (const row of await readParquet(join(series, file))) {
        // Before the relabelling of 2026-06-25 a day ran to 00:00 of the next; these are after it.
        const day = keyOf(symbol, (row['create_time'] as Date).toISOString().slice(0, 10));
        expect(keys).toContain(day);
        rows.push({ symbol, day, ...row });
      }
    }
  }
  return rows;
}

/** A retry of the failed run ends with exit code 0 and completes the lake. */
export async function expectRetried(scene: FaultScene, run: FaultRun): Promise<FaultRun> {
  const again = await scene.retry(run);
  expect(again.code).toBe(0);
  await expectIntact(scene, again);
  return again;
}

/** The socket of an answer, to say on it what HTTP does not allow. */
export function socketOf(response: ServerResponse): Socket {
  // `response.socket` is null while an earlier raw answer on the same connection has not ended as HTTP ends.
  return response.req.socket;
}

/** Says these bytes in place of an answer; then the connection stays as it is, is ended or is reset. */
export function sayRaw(
  response: ServerResponse,
  bytes: Buffer | string,
  then: 'stay' | 'end' | 'reset' = 'stay',
): void {
  const socket = socketOf(response);
  socket.write(bytes, () => {
    if (then === 'end') socket.end();
    // Let the bytes arrive before the reset overtakes them.
    if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 20);
  });
}

/** Writes bytes one by one until the reader leaves. */
export function trickle(response: ServerResponse, bytes: Buffer, everyMs: number): void {
  const socket = socketOf(response);
  let at = 0;
  const timer = setInterval(() => {
    socket.write(bytes.subarray(at, at + 1));
    at += 1;
    if (at >= bytes.length) clearInterval(timer);
  }, everyMs);
  socket.once('close', () => {
    clearInterval(timer);
  });
}

/** The head of an answer with exactly these lines. */
export function headOf(...lines: readonly string[]): string {
  return `${['HTTP/1.1 200 OK', ...lines].join('\r\n')}\r\n\r\n`;
}
