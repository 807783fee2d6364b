/** The end of a job whose run has failed, as a worker tells it to the queue. */
import { VERBS } from '../../../src/main.js';
import { UnrecoverableError, WaitingError } from 'bullmq';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Pipeline } from '../../../src/run/session/pipeline.js';
import { CryptodlError } from '../../../src/model/errors.js';
import { SharedResources } from '../../../src/model/shared-resources.js';
import { surroundingsOf } from '../../../src/files/environment.js';
import { resolveOptions } from '../../../src/plan/options/resolve.js';
import { createSerializer } from '../../../src/model/in-order.js';
import { loadBinance } from '../../../src/exchange/binance/binance.js';
import type { QueuedJob } from '../../../src/verbs/queue/bullmq.js';
import { jobData } from '../../../src/verbs/queue/job-data.js';
import { processJob } from '../../../src/verbs/queue/process-job.js';
import type { ProcessContext } from '../../../src/verbs/queue/end-attempt.js';
import { startArchive } from '../../helpers/archive.js';
import { scratchFolder } from '../../helpers/folders.js';
import { IdleClock } from '../../helpers/idle-clock.js';
import { publish, publishZip } from '../../helpers/published.js';

const scratch = scratchFolder();
const KEY = 'data/futures/um/daily/klines/BTCUSDT/1h/BTCUSDT-1h-2024-01-01.zip';
const OPTIONS = {
  market: ['um'],
  dataset: ['klines'],
  interval: ['1h'],
  symbols: ['BTCUSDT'],
  from: ['2024-01-01'],
  to: ['2024-01-01'],
};

it('a job that fails while its worker is stopped ends as failed, or waits for its next attempt', async () => {
  const folder = join(scratch, 'archive');
  publish(folder, KEY, 'a,row\n');
  const archive = await startArchive(folder);
  const lost = await endOf(archive.url);
  publishZip(folder, KEY, Buffer.from('no zip'));
  const later = await endOf(archive.url);
  await archive.close();
  expect([lost, later]).toEqual([expect.any(UnrecoverableError), expect.any(CryptodlError)]);
});

/** How a job ends whose worker is stopped while the queue is told of the failure. */
async function endOf(url: string): Promise<unknown> {
  const [exchange, stop, common] = [loadBinance(), new AbortController(), new SharedResources()];
  // The rounds of the run wait for minutes.
  const clock = new IdleClock(Date.now());
  const surroundings = surroundingsOf({ HOME: scratch, XDG_STATE_HOME: scratch });
  const values = { 'archive-url': [url], retries: ['0'], 'temp-dir': [scratch] };
  const layers = [{ origin: 'flag' as const, values, nameOf: (name: string) => `--${name}` }];
  const out = join(scratch, 'lake');
  const pipeline = new Pipeline({
    exchange,
    resolved: resolveOptions(VERBS.worker, layers, exchange),
    surroundings,
    clock,
    stop,
    isToBucket: false,
    common,
  });
  const job = {
    id: 'job',
    data: jobData('vision', { ...OPTIONS, out: [out] }),
    attemptsMade: 0,
    opts: { attempts: 3 },
    updateProgress: () => {
      stop.abort(new CryptodlError('interrupted', 'stopped'));
      return Promise.resolve();
    },
    moveToWait: () => Promise.resolve(1),
  };
  const context = {
    verbs: VERBS,
    exchange,
    surroundings,
    clock,
    io: { environment: {} },
    warn: () => undefined,
    layers,
    pipeline,
    signal: stop.signal,
    open: {
      bullmq: { UnrecoverableError, WaitingError },
      connection: { client: { eval: () => Promise.resolve(0) } },
      queue: { name: 'queue' },
    },
    lake: out,
    left: new Set(),
    absolute: (path: string) => path,
    serialize: createSerializer(),
    newRequests: () => ({}),
    onEnd: () => undefined,
  };
  const end = processJob(context as unknown as ProcessContext, job as unknown as QueuedJob, 'token', 'whole');
  const thrown: unknown = await clock
    .drive(end, { progress: () => 0, isVenueWithin: true })
    .catch((error: unknown) => error);
  await pipeline.close();
  return thrown;
}
