/** A whole run in simulated time: 3,100 objects (100 symbols × 31 days) from a host with a long tail and faults. */
import { VERBS } from '../../../src/main.js';
import { exchangeHosts } from '../../../src/exchange/hosts.js';
import { setMaxListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { CryptodlError, type ErrorCode } from '../../../src/model/errors.js';
import type { Fetch } from '../../../src/model/fetch.js';
import { SILENT_OBSERVER } from '../../../src/model/observer.js';
import { NO_PROXIES } from '../../../src/files/proxies.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import { Concurrency, mostInFlight } from '../../../src/run/pacing/concurrency.js';
import type { ConcurrencyOption } from '../../../src/plan/options/network-flags.js';
import { Costs } from '../../../src/run/report/costs.js';
import { Figures } from '../../../src/run/report/figures.js';
import { LiveRun } from '../../../src/run/report/live-run.js';
import { layersOver } from '../../../src/http/stack.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import { randoms } from '../../helpers/randoms.js';
import { answer } from '../../helpers/requests.js';
import { plan, queueOf, task } from '../../helpers/run-queue.js';
import { sized } from '../../helpers/tier-size.js';
import { VirtualClock } from '../../helpers/virtual-clock.js';

const TASKS = 3100;
/** A zip and its sidecar. */
const REQUESTS = TASKS * 2;
const MINUTE_MS = 60_000;

interface Weather {
  /** Share of requests that fail, in turn in these ways. */
  readonly share?: number;
  readonly ways?: readonly ErrorCode[];
  /** Everything is refused with 503 so long. */
  readonly downMs?: number;
  /** So many at once; what is more is refused. */
  readonly bears?: number;
  /** So many are served at once; what is more waits for its turn. */
  readonly serves?: number;
  readonly seed?: number;
}

/** Service time of 0.7 s in the mean with a long tail. */
function host(clock: VirtualClock, weather: Weather): Fetch & { requests: number; refused: number } {
  const { share = 0, ways = ['connection-lost'], downMs = 0, bears = Infinity, serves } = weather;
  const random = randoms(weather.seed ?? 7);
  const free = Array.from({ length: serves ?? 0 }, () => 0);
  const startedAt = clock.monotonic();
  let serving = 0;
  /** Until the answer, the wait for a turn included. */
  const turn = (ms: number): number => {
    if (free.length === 0) return ms;
    const next = free.indexOf(Math.min(...free));
    const now = clock.monotonic();
    free[next] = Math.max(now, free[next] ?? 0) + ms;
    return free[next] - now;
  };
  const serve: Fetch = async (_request, { signal, onActivity }) => {
    fetch.requests += 1;
    onActivity?.('sent');
    const isSlow = random() < 0.02;
    const serviceMs = turn(300 + random() * 700 + (isSlow ? random() * 5000 : 0));
    if (clock.monotonic() - startedAt < downMs || serving >= bears) {
      fetch.refused += 1;
      await clock.sleep(50, signal);
      throw new CryptodlError('http-server-error', '503');
    }
    serving += 1;
    try {
      await clock.sleep(serviceMs, signal);
    } finally {
      serving -= 1;
    }
    onActivity?.('headers');
    const way = ways[fetch.requests % ways.length] ?? 'bug';
    if (random() < share) throw new CryptodlError(way, 'said by the weather');
    return answer('x');
  };
  const fetch = Object.assign(serve, { requests: 0, refused: 0 });
  return fetch;
}

/** Lets time pass until the work is done; when that was. */
async function toEnd(clock: VirtualClock, work: Promise<unknown>): Promise<number> {
  const ends: number[] = [];
  const ended = work.then(() => ends.push(clock.monotonic()));
  while (ends.length === 0) await clock.advance(1000);
  await ended;
  return ends[0] ?? Number.NaN;
}

interface Outcome {
  readonly seconds: number;
  readonly ok: number;
  readonly failed: number;
  readonly requests: number;
  readonly refused: number;
  readonly limiterWaits: number;
  readonly breakerOpened: number;
  /** Objects in flight, where it settled. */
  readonly level: number;
}

/** The layers of the program and its queue over simulated time, with the default options. */
async function ours(weather: Weather, choice?: ConcurrencyOption): Promise<Outcome> {
  const clock = new VirtualClock();
  clock.random = randoms((weather.seed ?? 0) + 11);
  const server = host(clock, weather);
  const { options } = resolveOptions(VERBS.vision, []);
  const figures = new Figures();
  const concurrency = new Concurrency({ choice: choice ?? options.concurrency, start: 30 });
  const opened: string[] = [];
  const { fetch, throttle } = layersOver(server, {
    options: { ...options, mostInFlight: mostInFlight(options.concurrency) },
    clock,
    hosts: exchangeHosts(options, loadBinance()),
    observer: {
      ...SILENT_OBSERVER,
      event: (name, fields) => {
        if (name === 'breaker' && 'state' in fields && fields.state === 'open') opened.push(name);
      },
    },
    figures,
    followers: [new Costs(clock), new LiveRun(clock)],
    concurrency,
    bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
    proxies: NO_PROXIES,
    stateFolder: '/nowhere',
    isLate: () => false,
    signal: new AbortController().signal,
  });
  const { signal } = new AbortController();
  // Every request in flight listens.
  setMaxListeners(0, signal);
  const download = async (_plan: unknown, { object }: { object: { key: string } }): Promise<string> => {
    const zip = { url: `${options.archiveUrl}/${object.key}`, bucket: 'archive', expect: {} };
    const sidecar = { url: `${zip.url}.CHECKSUM`, bucket: 'archive' };
    await Promise.all([zip, sidecar].map((request) => fetch(request, { signal, traceId: request.url })));
    return object.key;
  };
  const { places: ofQueue, run, writes, failed } = queueOf({ download }, concurrency.limit);
  concurrency.onChange = (places) => {
    ofQueue.setDownloads(places);
  };
  const plans = Array.from({ length: 100 }, (_, symbol) =>
    plan(
      `s${symbol}`,
      Array.from({ length: 31 }, (__, day) => task(`s${symbol}-${day}`)),
    ),
  );
  const started = clock.monotonic();
  const endedAt = await toEnd(clock, run(plans));
  return {
    seconds: (endedAt - started) / 1000,
    ok: writes.reduce((sum, { received }) => sum + received.length, 0),
    failed: failed.length,
    requests: server.requests,
    refused: server.refused,
    limiterWaits: throttle.figures.waits,
    breakerOpened: opened.length,
    level: concurrency.limit,
  };
}

describe('3,100 objects, 0.7 s each with a long tail, one in twenty failing', () => {
  const seeds = Array.from({ length: sized(12, 1) }, (_, index) => index + 1);
  describe.each(seeds)('by the dice of seed %d', (seed) => {
    it.each<[string, Weather]>([
      ['at a host without faults', {}],
      ['when one in twenty is reset', { share: 0.05 }],
      [
        'when one in twenty is reset or refused',
        { share: 0.05, ways: ['connection-lost', 'http-server-error'] },
      ],
    ])(
      'take at most 35 s with default settings %s, without waits for the limiter and with few retries',
      async (_, weather) => {
        const outcome = await ours({ ...weather, seed });
        expect(outcome).toMatchObject({ ok: TASKS, failed: 0, limiterWaits: 0, breakerOpened: 0 });
        expect(outcome.seconds).toBeLessThanOrEqual(35);
        expect(outcome.requests).toBeLessThan(REQUESTS * 1.1);
      },
    );
  });

  it('cost few requests while the host refuses all for ten minutes, and all end ok', async () => {
    const outcome = await ours({ downMs: 10 * MINUTE_MS });
    expect(outcome).toMatchObject({ ok: TASKS, failed: 0 });
    expect(outcome.requests).toBeLessThanOrEqual(REQUESTS * 1.1 + 100);
    // A breaker for each of the two hosts, with three probes in half a minute.
    expect(outcome.refused).toBeLessThan(200);
    // It is over within one period of the breaker after the outage.
    expect(outcome.seconds).toBeLessThan(10 * 60 + 30 + 90);
  });

  it.each(sized([20, 40, 60, 100], [20]))(
    'cause few refusals at a host with a limit of %d requests at once',
    async (bears) => {
      const outcome = await ours({ bears });
      expect(outcome).toMatchObject({ ok: TASKS, failed: 0 });
      expect(outcome.requests).toBeLessThan(REQUESTS * 1.15);
    },
  );

  it.each(sized([20, 40, 80], [20]))(
    'take at most 15 % longer than with the best fixed concurrency at a host that serves %d requests at once',
    async (serves) => {
      const fixed = await Promise.all(
        sized([16, 32, 64, 128], [16, 64]).map(
          async (limit) => (await ours({ serves }, { kind: 'fixed', limit })).seconds,
        ),
      );
      const outcome = await ours({ serves });
      expect(outcome).toMatchObject({ ok: TASKS, failed: 0 });
      expect(outcome.seconds).toBeLessThanOrEqual(Math.min(...fixed) * 1.15);
      // Twice as many as that takes: a zip and its sidecar are two of those that are served at once.
      expect(outcome.level).toBeLessThanOrEqual(Math.max(serves, 30));
    },
  );

  it('end ok with at most a quarter more requests when one in ten fails in six ways', async () => {
    const ways = [
      'http-server-error',
      'connection-lost',
      'length-mismatch',
      'checksum-mismatch',
      'rate-limited',
      'idle-timeout',
    ] as const;
    const outcome = await ours({ share: 0.1, ways });
    expect(outcome).toMatchObject({ ok: TASKS, failed: 0, breakerOpened: 0 });
    expect(outcome.requests).toBeLessThan(REQUESTS * 1.25);
  });
});
