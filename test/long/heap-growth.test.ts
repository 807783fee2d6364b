/** The memory of a long run: what its followers, its counts and its queue keep of each object, and what a whole run keeps. */
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { AttemptEnd, FetchResponse } from '../../src/model/fetch.js';
import { followLayer } from '../../src/http/transport/measure.js';
import { CryptodlError } from '../../src/model/errors.js';
import { joinObservers } from '../../src/model/observer.js';
import type { Observer } from '../../src/model/observer.js';
import type { Outcome } from '../../src/model/outcome.js';
import type { SourceObject, PartitionPlan, PlanTotals } from '../../src/model/task.js';
import { PrometheusFigures } from '../../src/run/monitor/prometheus.js';
import { NO_HISTORY } from '../../src/run/monitor/run-history.js';
import { Timeline } from '../../src/run/monitor/timeline.js';
import { Costs } from '../../src/run/report/costs.js';
import { Figures } from '../../src/run/report/figures.js';
import { openLogOf } from '../../src/run/report/log.js';
import type { NetworkFigures } from '../../src/run/report/network-figures.js';
import { Reporter } from '../../src/run/report/reporter.js';
import { LiveRun } from '../../src/run/report/live-run.js';
import { Tally } from '../../src/run/report/tally.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { cryptodl, FAST } from '../helpers/cli.js';
import { SETTINGS } from '../helpers/conversion.js';
import { scratchFolder } from '../helpers/folders.js';
import { liveHeap } from '../helpers/heap.js';
import type { LiveHeap } from '../helpers/heap.js';
import { KeyStore, startKeyArchive, urlLines } from '../helpers/key-archive.js';
import { plan as planOf, queueOf, task } from '../helpers/run-queue.js';
import { received } from '../helpers/conversion.js';
import { VirtualClock } from '../helpers/virtual-clock.js';

const [FIRST, LAST] = [3000, 21_000];
/** The smallest leak is a number or a reference per object: 8 bytes and the growth of its list. An entry has at least 50. */
const MOST_BYTES_PER_OBJECT = 40;

const clock = new VirtualClock();
const nowhere = (): NodeJS.WritableStream =>
  new Writable({
    write: (_chunk, _encoding, done) => {
      done();
    },
  });

/** Bytes of the heap per object between the first and the last objects. */
async function growth(feed: (from: number, to: number) => Promise<void>): Promise<number> {
  await feed(0, FIRST);
  const before = await liveHeap();
  await feed(FIRST, LAST);
  return growthOf([before, await liveHeap()]);
}

function growthOf([before, after]: readonly LiveHeap[]): number {
  if (before === undefined || after === undefined) throw new Error('two samples are needed');
  const bytes = after.heapBytes - before.heapBytes + (after.bufferBytes - before.bufferBytes);
  return Math.round(bytes / (LAST - FIRST));
}

/** The notifications of objects with two requests, a retry, a failure of every third object, and a second for every fourth. */
function follower(live: LiveRun, more: Partial<Observer> = {}, tally = new Tally(loadBinance())) {
  const observer = joinObservers([live.observer, more]);
  const figures = new Figures(live.counts);
  const costs = new Costs(clock);
  const network = (): NetworkFigures =>
    ({ ...figures.figures, concurrency: 4, costMs: costs.figures }) as unknown as NetworkFigures;
  live.progress = {
    totals: { fetch: LAST, skip: 0, absent: 0 } as unknown as PlanTotals,
    tally,
    state: () => ({ inFlight: 0, writing: 0, toWrite: 0 }),
  };
  live.network = network;
  live.hosts = () => ({ buckets: [], breakers: [], retryBudgets: {} });
  return async (from: number, to: number): Promise<void> => {
    if (from === 0) live.enter('working');
    for (let index = from; index < to; index += 1) {
      const symbol = `S${index % 50}USDT`;
      const series = { market: 'um', dataset: 'klines', interval: '1m', symbol };
      const period = { cadence: 'daily', from: index % 900, to: (index % 900) + 1 } as const;
      const object: SourceObject = { key: `data/${symbol}-${index}.zip`, period };
      const plan: PartitionPlan = { series, settings: SETTINGS, label: '2024-01', tasks: [] };
      const url = `http://archive.test/${object.key}`;
      const bad = new CryptodlError('http-server-error', `${url} answered 500`);
      const end = live.begin('partition', { plan });
      await live.during('download', { plan, object }, async () => {
        const fetch = followLayer([live])((request, { onWait }) => {
          for (const attempt of [1, 2]) {
            const at = clock.monotonic();
            const ended: AttemptEnd = {
              request,
              attemptId: `${index}/${attempt}`,
              begunAtMs: at,
              sentAtMs: at,
              endedAtMs: at + (index % 500),
              firstByteMs: 1,
              status: attempt === 1 ? 500 : 200,
              error: attempt === 1 ? bad : undefined,
            };
            figures.begun();
            figures.ended(ended);
            observer.attempt(ended);
            if (attempt === 2) continue;
            const retry = { url, retry: 1, usesAttempt: true, error: bad, delayMs: 10 };
            observer.retry({ traceId: String(index), attemptId: `${index}/1`, ...retry });
            onWait?.('back-off')();
          }
          return Promise.resolve({} as FetchResponse);
        });
        const context = { signal: new AbortController().signal, traceId: String(index) };
        await fetch({ url, bucket: 'archive' }, context);
      });
      observer.arrived(100);
      const outcome: Outcome =
        index % 3 === 0
          ? { kind: 'failed', error: bad }
          : { kind: 'ok', bytes: 100, rows: 1, unverified: false };
      await live.during('write', { plan }, () => Promise.resolve());
      tally.count(series, object, outcome);
      end();
      if (index % 4 === 0) await clock.advance(1000);
    }
  };
}

const silent = openLogOf({ logFile: undefined, logLevel: 'info' }, { stderr: nowhere() });
const reporterOf = (progress: 'bar' | 'plain' | 'json'): Reporter =>
  new Reporter(
    { json: true, quiet: false, progress, logFile: undefined, logLevel: 'info' },
    { stdout: nowhere(), stderr: Object.assign(nowhere(), { isTTY: true }), clock, environment: {} },
    { log: silent },
  );

describe(`grows by less than ${MOST_BYTES_PER_OBJECT} bytes per object:`, () => {
  it.each<[string, (live: LiveRun) => void, Partial<Observer>?]>([
    ['the counts of a run, and its work in progress', () => undefined],
    [
      'the timeline',
      (live) => {
        live.follow(new Timeline(clock));
      },
    ],
    [
      'the metrics of Prometheus',
      (live) => {
        new PrometheusFigures(clock, 0).follow('vision', NO_HISTORY, live);
      },
    ],
    ...(['bar', 'plain', 'json'] as const).map(
      (progress): [string, (live: LiveRun) => void, Partial<Observer>] => {
        const reporter = reporterOf(progress);
        const followWith = (live: LiveRun): void => {
          live.follow(reporter.follower);
        };
        return [`the reporter with ${progress}`, followWith, reporter];
      },
    ),
  ])('%s', async (_name, followWith, observer) => {
    const live = new LiveRun(clock);
    followWith(live);
    expect(await growth(follower(live, observer))).toBeLessThan(MOST_BYTES_PER_OBJECT);
    live.enter('ending');
  });

  it('the queue, with bodies, and with errors that have evidence', async () => {
    const samples: LiveHeap[] = [];
    const { queue } = queueOf({
      download: (_, { object }) => {
        if (Number(object.key) % 3 !== 0)
          return Promise.resolve({ received: received('2024-01-15', Buffer.alloc(2000)) });
        const evidence = { body: Buffer.alloc(2000) } as unknown as FetchResponse;
        return Promise.reject(new CryptodlError('checksum-mismatch', object.key, { evidence }));
      },
      write: () => Promise.resolve(new Map()),
      onFailed: () => Promise.resolve(),
      onSettled: () => Promise.resolve(),
    });
    async function* plans(): AsyncGenerator<PartitionPlan> {
      for (let index = 0; index < LAST; index += 1) {
        if (index === FIRST || index === LAST - 1) samples.push(await liveHeap());
        yield planOf(String(index), [task(String(index))]);
      }
    }
    await queue.run(plans());
    expect(growthOf(samples)).toBeLessThan(MOST_BYTES_PER_OBJECT);
  });
});

describe('a whole run of 9,000 objects, every tenth of which is first refused,', () => {
  const [symbols, days] = [600, 15];
  const endRecord = Buffer.alloc(22);
  endRecord.writeUInt32LE(0x06054b50, 0);
  /** No zip inside, but a run that keeps zips does not look inside of one with a digest. */
  const body = Buffer.concat([Buffer.from('PK\u0003\u0004'), randomBytes(20_000), endRecord]);
  const digest = createHash('sha256').update(body).digest('hex');
  const refused = Buffer.alloc(60_000, 'x');
  /**
   * Measured: 1000. The cached manifests have 10,000 lines, whatever the size of the lake, and are not full here. A retained piece of work
   * would be 5000.
   */
  const mostHeapPerObject = 2000;
  /** The refused bodies between the samples are 36 MB. */
  const mostBuffers = 12e6;

  /** Keys of the zips, in order. */
  const keys = Array.from({ length: symbols * days }, (_, index) => {
    const symbol = `S${String(Math.floor(index / days)).padStart(3, '0')}USDT`;
    const day = String((index % days) + 1).padStart(2, '0');
    return `data/futures/um/daily/klines/${symbol}/1h/${symbol}-1h-2026-08-${day}.zip`;
  });

  it('with all of its outputs does not keep bodies, tasks and pieces of work', async () => {
    const scratch = scratchFolder();
    const samples: LiveHeap[] = [];
    let zips = 0;
    const archive = await startKeyArchive(new KeyStore([urlLines(keys)]), (key, response) => {
      if (key.endsWith('.CHECKSUM')) {
        response.end(`${digest}  ${key.slice(key.lastIndexOf('/') + 1, -'.CHECKSUM'.length)}\n`);
        return true;
      }
      zips += 1;
      if (zips % 1000 === 0)
        void liveHeap().then((sample) => {
          samples.push(sample);
          response.end(body);
        });
      else response.end(zips % 10 === 5 ? refused : body);
      return true;
    });
    const file = (name: string): string => join(scratch, name);
    try {
      const { code } = await cryptodl([
        'vision',
        '--out',
        file('lake'),
        '--archive-url',
        archive.url,
        ...'--format zip --symbols S* --interval 1h --cadence daily --from 2026-08-01 --to 2026-08-15 --now 2026-11-21T12:00:00Z'.split(
          ' ',
        ),
        ...FAST,
        ...'--concurrency 16 --retries 0 --prometheus-textfile'.split(' '),
        file('run.prom'),
        '--debug-dump',
        file('dump.json'),
        '--state-dir',
        file('state'),
      ]);
      expect([0, 3]).toContain(code);
    } finally {
      await archive.close();
    }
    // Bodies in transit come and go between samples.
    const least = (of: readonly LiveHeap[], name: keyof LiveHeap): number =>
      Math.min(...of.map((sample) => sample[name]));
    const [first, last] = [samples.slice(0, 3), samples.slice(6, 9)];
    expect(last).toHaveLength(3);
    expect((least(last, 'heapBytes') - least(first, 'heapBytes')) / 6000).toBeLessThan(mostHeapPerObject);
    expect(least(last, 'bufferBytes') - least(first, 'bufferBytes')).toBeLessThan(mostBuffers);
  }, 180_000);
});
