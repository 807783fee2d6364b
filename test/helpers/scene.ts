/** What an end-to-end test needs: an archive, a REST venue, a clock, lakes, and runs of the program. It closes itself. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from './archive.js';
import type { TestArchive } from './archive.js';
import { systemClock } from '../../src/model/clock.js';
import type { Clock } from '../../src/model/clock.js';
import { cryptodl, FAST } from './cli.js';
import type { CliOptions, CliResult } from './cli.js';
import { scratchFolder } from './folders.js';
import { IdleClock } from './idle-clock.js';
import { filesBelow, readParquet } from './lake.js';
import type { LakeRow } from './lake.js';
import { RestVenue } from './rest-venue.js';
import type { RestVenueOptions } from './rest-venue.js';
import { serveVenue } from './rest-venue-server.js';
import type { ServedVenue } from './rest-venue-server.js';

type ArchiveSpec = Parameters<typeof makeArchive>[1];
/** Words of a command line; a text is split at its blanks. */
export type Words = string | readonly string[];

export interface SceneOptions {
  /** What the archive publishes; daily um klines of BTCUSDT at 1h where nothing else is said. */
  readonly archive?: readonly (Pick<ArchiveSpec, 'from' | 'to'> & Partial<ArchiveSpec>)[];
  /** Changes the folder of the archive before it is served. */
  readonly change?: (folder: string) => void;
  /** A REST venue beside the archive. */
  readonly venue?: Omit<RestVenueOptions, 'now'>;
  /** The time of the program and of the venue. */
  readonly now?: string;
  /** Virtual time: it moves only while the program and the archive have nothing to do. */
  readonly isTimeVirtual?: boolean;
  /** Flags of every run; those of a test come later, and count more. */
  readonly flags?: Words;
}

export interface SceneRun extends CliResult {
  /** The lake of the run. */
  readonly lake: string;
  /** The last event of `--json`. */
  readonly summary: Readonly<Record<string, unknown>>;
}

export type RunOptions = CliOptions & {
  /** The name of a lake that several runs share; without it each run has a new one. */
  readonly lake?: string;
  /** In place of the flags of the scene. */
  readonly sceneFlags?: Words;
  /** In place of the address of the archive. */
  readonly url?: string;
};

type Answer = (request: IncomingMessage, response: ServerResponse, path: string) => void;

/** A scene of a test file, or of the `describe` that it is called in. After each test the archive is sound again, and its log empty. */
export function useScene(options: SceneOptions): Scene {
  const scene = new Scene(options, scratchFolder());
  beforeAll(() => scene.open());
  afterEach(() => {
    scene.reset();
  });
  afterAll(() => scene.close());
  return scene;
}

export class Scene {
  readonly now: string;
  /** The time of the program and of delayed answers. */
  readonly clock: Clock;
  /** For runs of `cryptodl` beside those of the scene: its virtual time. */
  readonly virtual: IdleClock | undefined;
  readonly #options: SceneOptions;
  readonly #archives: TestArchive[] = [];
  readonly #venues: { readonly venue: RestVenue; readonly served: ServedVenue }[] = [];

  constructor(
    options: SceneOptions,
    /** Removed at the end. */
    readonly scratch: string,
  ) {
    this.#options = options;
    this.now = options.now ?? '2026-11-21T12:00:00Z';
    this.virtual = options.isTimeVirtual === true ? new IdleClock(Date.now()) : undefined;
    this.clock = this.virtual ?? systemClock;
  }

  async open(): Promise<void> {
    const { archive = [], change, venue: symbols } = this.#options;
    mkdirSync(this.folder);
    for (const spec of archive)
      makeArchive(this.folder, {
        market: 'um',
        dataset: 'klines',
        interval: '1h',
        symbols: ['BTCUSDT'],
        cadence: 'daily',
        ...spec,
      });
    change?.(this.folder);
    this.#archives.push(await startArchive(this.folder));
    if (symbols === undefined) return;
    const venue = new RestVenue({ ...symbols, now: () => Date.parse(this.now) });
    this.#venues.push({ venue, served: await serveVenue(venue) });
  }

  reset(): void {
    this.archive.fault = undefined;
    this.archive.requests.length = 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.#archives.map((archive) => archive.close()));
    await Promise.all(this.#venues.map(({ served }) => served.close()));
  }

  /** What the archive serves. */
  get folder(): string {
    return join(this.scratch, 'archive');
  }

  get archive(): TestArchive {
    return theOne(this.#archives);
  }

  get venue(): RestVenue {
    return theOne(this.#venues).venue;
  }

  /** A new folder. */
  newFolder(): string {
    return mkdtempSync(join(this.scratch, 'folder-'));
  }

  vision(flags: Words = [], options: RunOptions = {}): Promise<SceneRun> {
    return this.#run('vision', flags, options);
  }

  metrics(flags: Words = [], options: RunOptions = {}): Promise<SceneRun> {
    return this.#run('metrics', flags, options);
  }

  /** A lake after these downloads, which all must succeed. */
  async lakeOf(downloads: readonly Words[], lake = `lake-${randomUUID()}`): Promise<string> {
    for (const flags of downloads) {
      const { code, stderr } = await this.vision(flags, { lake });
      if (code !== 0) throw new Error(stderr);
    }
    return join(this.scratch, lake);
  }

  /** The archive does not serve these paths; `answer` answers instead. */
  answer(isMeant: (path: string) => boolean, answer: Answer): void {
    this.archive.fault = (path, request, response) => {
      if (!isMeant(path)) return false;
      answer(request, response, path);
      return true;
    };
  }

  /** The archive answers these paths with a status. */
  refuse(isMeant: (path: string) => boolean, status: number, body = ''): void {
    this.answer(isMeant, (_request, response) => response.writeHead(status).end(body));
  }

  /** `answer` answers the first request of each of these paths; the archive serves the later ones. `most`: of so many paths. */
  answerFirst(isMeant: (path: string) => boolean, answer: Answer, most = Number.POSITIVE_INFINITY): void {
    const seen = new Set<string>();
    this.answer(
      (path) => isMeant(path) && !seen.has(path) && seen.size < most,
      (request, response, path) => {
        seen.add(path);
        answer(request, response, path);
      },
    );
  }

  /** The archive serves these paths after so many milliseconds. */
  delay(isMeant: (path: string) => boolean, ms: number): void {
    this.answer(isMeant, (request, response) => {
      this.after(ms, () => {
        this.archive.serve(request, response);
      });
    });
  }

  /** Calls back after so many milliseconds of the scene's time. */
  after(ms: number, act: () => void): void {
    this.clock.timer(ms, act);
  }

  /** Rows of the Parquet files below a folder of a lake, in the order of the files. */
  async rows({ lake }: Pick<SceneRun, 'lake'>, series = ''): Promise<LakeRow[]> {
    const folder = join(lake, 'binance', series);
    const files = filesBelow(folder, '.parquet');
    return (await Promise.all(files.map((file) => readParquet(join(folder, file))))).flat();
  }

  async #run(verb: string, flags: Words, options: RunOptions): Promise<SceneRun> {
    const { lake = `lake-${randomUUID()}`, sceneFlags = this.#options.flags ?? [] } = options;
    const out = join(this.scratch, lake);
    const hosts = this.#venues.flatMap(({ served }) =>
      (['fapi', 'dapi', 'spot'] as const).flatMap((host) => [`--${host}-url`, served.urlOf(host)]),
    );
    const places = ['--out', out, '--archive-url', options.url ?? this.archive.url, ...hosts];
    const own = [...words(sceneFlags), ...words(flags)];
    const result = await cryptodl([verb, ...places, '--now', this.now, ...FAST, ...own], {
      clock: this.virtual,
      ...options,
    });
    return { ...result, lake: out, summary: { ...result.events.at(-1) } };
  }
}

export const isListing = (path: string): boolean => path.includes('prefix=');
export const isZip = (path: string): boolean => path.endsWith('.zip');

function words(text: Words): readonly string[] {
  return typeof text === 'string' ? text.split(' ').filter((word) => word !== '') : text;
}

function theOne<T>(things: readonly T[]): T {
  const [thing] = things;
  if (thing === undefined) throw new Error('the scene has none');
  return thing;
}
