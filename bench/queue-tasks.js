/**
 * The measured part of bench/queue.js, in a process of its own: `node bench/queue-tasks.js tasks N FOLDER` plans and runs N tasks
 * through the program's planner, spool, queue and throttle, with an exchange in this process that answers at once, and a
 * writer that writes nothing; `node bench/queue-tasks.js loop N` runs as many empty tasks through p-queue. Prints one line of JSON.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import PQueue from 'p-queue';
import { klinesFolder, klinesLine, SETTINGS, writeManifest } from '../scripts/synthetic-lake.js';

/** @import { Fetch } from '../src/model/fetch.js' */
/** @import { ListedObject } from '../src/exchange/exchange.js' */
/** @import { SelectedSeries } from '../src/plan/series-request.js' */
/** @import { Outcome } from '../src/model/outcome.js' */
/** @import { PartitionPlan, Series, Task } from '../src/model/task.js' */

const CONCURRENCY = 50;
const WRITERS = 2;
const DAYS = 1000;
const DAY_MS = 86_400_000;
const FIRST_DAY = Date.parse('2024-01-01') / DAY_MS;
/** One series of this number is held, except for its last days. */
const HELD_EVERY = 20;
const NEW_DAYS = 5;
/** The ETag of each object, in the listing and in the manifest of the held series. */
const ETAG = 'd41d8cd98f00b204e9800998ecf8427e';
const BODY = Buffer.from('PK');

/** @param {number} index */
function symbolOf(index) {
  return `S${String(index).padStart(5, '0')}USDT`;
}

/** @param {number} index */
function dayOf(index) {
  return new Date((FIRST_DAY + index) * DAY_MS).toISOString().slice(0, 10);
}

const DAY_TEXTS = Array.from({ length: DAYS }, (_, index) => dayOf(index));

/**
 * The lake before the run: every 20th series, without its newest days.
 * @param {string} lake
 * @param {number} tasks
 * @returns {number} objects
 */
export function makeHeldSeries(lake, tasks) {
  let held = 0;
  for (let index = 0; index < Math.ceil(tasks / DAYS); index += HELD_EVERY) {
    const symbol = symbolOf(index);
    const folder = klinesFolder(lake, symbol);
    const days = DAY_TEXTS.slice(0, Math.min(DAYS, tasks - index * DAYS) - NEW_DAYS);
    writeManifest(
      folder,
      days.map((day) => klinesLine(symbol, day, { fileBytes: 0 })),
    );
    for (const month of new Set(days.map((day) => day.slice(0, 7))))
      writeFileSync(join(folder, `${month}.parquet`), '');
    held += days.length;
  }
  return held;
}

/**
 * @param {string} path below dist
 * @returns {Promise<any>}
 */
function built(path) {
  return import(new URL(`../dist/${path}`, import.meta.url).href);
}

/**
 * @param {number} tasks
 * @param {string} lake
 */
async function runTasks(tasks, lake) {
  const spools = join(lake, '.cryptodl');
  mkdirSync(spools, { recursive: true });
  const plan = await planner(lake, spools);
  const { tally, run } = await runner(spools);
  const used = startMeter();
  const { spool, totals } = await plan(tasks);
  const planCpuSeconds = used().cpuSeconds;
  await run(spool.plans());
  await spool.close();
  return { ...used(), planCpuSeconds, outcomes: tally.outcomes, totals };
}

/**
 * @param {string} root
 * @param {string} runFolder
 */
async function planner(root, runFolder) {
  /** @type {typeof import('../src/plan/plan.js')} */
  const { makePlan } = await built('plan/plan.js');
  /** @type {typeof import('../src/lake/manifests.js')} */
  const { Manifests } = await built('lake/manifests.js');
  /** @type {typeof import('../src/exchange/binance/binance.js')} */
  const { loadBinance } = await built('exchange/binance/binance.js');
  const today = FIRST_DAY + DAYS + 1;
  const exchange = loadBinance();
  const session = /** @type {const} */ ({
    exchange,
    paths: { root },
    manifests: new Manifests(exchange.archive),
    nowMs: today * DAY_MS,
    options: {
      force: false,
      revisions: 'check',
      recheckDays: 0,
      verify: 'sha256',
      staleChecksum: 'fail',
    },
    listing: { objects: listed, folders: noFolders },
    rest: { pages: async function* () {} },
    probe: () => Promise.resolve(false),
    runFolder,
    observer: { warn: (/** @type {string} */ message) => void process.stderr.write(`${message}\n`) },
  });
  return (/** @type {number} */ tasks) =>
    makePlan(session, { requests: [...wanted(tasks)], hasListing: true });
}

/**
 * The queue of a run: each object takes one permit, and each outcome is reported and counted.
 * @param {string} spools
 */
async function runner(spools) {
  /** @type {typeof import('../src/plan/plan-spool.js')} */
  const { PlanSpool } = await built('plan/plan-spool.js');
  /** @type {typeof import('../src/run/queue/run-queue.js')} */
  const { RunQueue } = await built('run/queue/run-queue.js');
  /** @type {typeof import('../src/run/pacing/places.js')} */
  const { Slots } = await built('run/pacing/places.js');
  /** @type {typeof import('../src/run/report/tally.js')} */
  const { Tally } = await built('run/report/tally.js');
  /** @type {typeof import('../src/model/outcome.js')} */
  const { taskOutcome } = await built('model/outcome.js');
  const tally = new Tally();
  /**
   * @param {Pick<Task, 'series' | 'object'>} task
   * @param {Outcome} outcome
   */
  const tell = ({ series, object }, outcome) => {
    tally.count(series, object, outcome);
    taskOutcome(series, object, outcome);
    return Promise.resolve();
  };
  const stop = new AbortController();
  const download = await downloader(stop.signal);
  let deferred = 0;
  const written = {
    written: new Map(),
    failed: new Map(),
    files: 0,
    bytes: 0,
    duplicatesAcross: 0,
    overlaps: [],
  };
  const queue = new RunQueue({
    writer: {
      prepare: (plan) => Promise.resolve(plan),
      write: () => Promise.resolve(written),
    },
    downloads: {
      download: (_, task) => download(task),
      together: () => undefined,
      bytesOf: ({ object }) => object.bytes ?? 0,
    },
    outcomes: {
      written: async ({ series }, received) => {
        for (const { object } of received)
          await tell({ series, object }, { kind: 'ok', bytes: 1, unverified: false });
      },
      failed: (_, task, error) => tell(task, { kind: 'failed', error }),
      settled: (_, task) => tell(task, { kind: 'skipped' }),
    },
    rounds: { before: () => Promise.resolve(), substituted: () => Promise.resolve(undefined) },
    live: { begin: () => () => undefined, during: (_stage, _subject, act) => act() },
    places: new Slots({ downloads: CONCURRENCY, writers: WRITERS }),
    stop,
    refusal: () => undefined,
    createSpool: () => new PlanSpool(join(spools, `deferred-${(deferred += 1)}.jsonl`)),
  });
  return { tally, run: (/** @type {AsyncIterable<PartitionPlan>} */ plans) => queue.run(plans) };
}

/** @param {AbortSignal} signal */
async function downloader(signal) {
  /** @type {typeof import('../src/http/throttle/throttle.js')} */
  const { Throttle } = await built('http/throttle/throttle.js');
  /** @type {typeof import('../src/model/clock.js')} */
  const { systemClock } = await built('model/clock.js');
  /** @type {typeof import('../src/exchange/keys.js')} */
  const { urlPathOf } = await built('exchange/keys.js');
  // With the exchange's own rates the run would wait for permits.
  const rate = { permitsPerSecond: 1e12, burst: 1e12 };
  const throttle = new Throttle({
    options: { maxWaitMs: 1000 },
    clock: systemClock,
    hosts: {
      buckets: { archive: rate },
      archiveUrl: '',
      listingUrl: '',
      fallbackUrl: undefined,
      restUrls: {},
      knownUrls: [],
      bannedWith: () => [],
      usedPermits: () => 0,
      readRefusal: () => ({}),
    },
    bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
    observer: { warn: () => undefined },
    stateFolder: undefined,
  });
  const fetch = throttle.layer(answer);
  return async (/** @type {Task} */ task) => {
    const url = `http://archive.test/${urlPathOf(task.object.key)}`;
    await fetch({ url, bucket: 'archive' }, { signal, traceId: '' });
    return { received: /** @type {any} */ (task) };
  };
}

/**
 * @param {number} tasks
 * @returns {Generator<SelectedSeries>}
 */
function* wanted(tasks) {
  for (let first = 0; first < tasks; first += DAYS) {
    /** @type {Series} */
    const series = { market: 'um', dataset: 'klines', interval: '1m', symbol: symbolOf(first / DAYS) };
    yield {
      series,
      settings: SETTINGS,
      cadences: ['daily'],
      ranges: [{ from: FIRST_DAY, to: FIRST_DAY + Math.min(DAYS, tasks - first) }],
    };
  }
}

/**
 * Every day of any series, as one page.
 * @param {string} prefix
 * @returns {AsyncGenerator<ListedObject[]>}
 */
async function* listed(prefix) {
  await Promise.resolve();
  const symbol = prefix.split('/').at(-3);
  yield DAY_TEXTS.map((day) => ({
    key: `${prefix}${symbol}-1m-${day}.zip`,
    bytes: 61_234,
    etag: ETAG,
    lastModified: '2026-01-01T00:00:00.000Z',
  }));
}

/** @returns {AsyncGenerator<string>} */
async function* noFolders() {}

/** @type {Fetch} */
function answer() {
  return Promise.resolve({
    status: 200,
    headers: {},
    body: { kind: 'memory', bytes: BODY },
    sha256: '',
    md5: '',
  });
}

/** @param {number} tasks */
async function runLoop(tasks) {
  const queue = new PQueue({ concurrency: CONCURRENCY });
  let done = 0;
  const started = startMeter();
  for (let task = 0; task < tasks; task += 1) {
    await queue.onSizeLessThan(CONCURRENCY);
    void queue.add(() => {
      done += 1;
      return Promise.resolve();
    });
  }
  await queue.onIdle();
  return { ...started(), outcomes: { ok: done } };
}

/** CPU time of all threads of this process, including garbage collection. */
function startMeter() {
  const wall = process.hrtime.bigint();
  const cpu = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return {
      cpuSeconds: (user + system) / 1e6,
      wallSeconds: Number(process.hrtime.bigint() - wall) / 1e9,
      peakMb: process.resourceUsage().maxRSS / 1024,
    };
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , what, tasks, lake = ''] = process.argv;
  const used = what === 'loop' ? await runLoop(Number(tasks)) : await runTasks(Number(tasks), lake);
  console.log(JSON.stringify(used));
}
