/** The avoidable part of the time of a run, and the flag that changes it. */
import type { WaitReason } from '../../model/fetch.js';
import type { ErrorCode } from '../../model/errors.js';
import { countText, numberText } from '../../model/units.js';
import { row } from './closing-block.js';
import type { NetworkFigures } from './network-figures.js';

interface Diagnosed {
  readonly network: NetworkFigures;
  readonly elapsedMs: number;
}

/** The largest cost gets a line if it is more than this share of the run, and at least one second. */
const SHOWN_SHARE = 0.1;
const SHOWN_MS = 1000;

/** The refusals; the largest cost, and the flag that lowers it. */
export function diagnosisLines(run: Diagnosed): string[] {
  const { refusals, refusalsPerHour } = run.network.limiter;
  const refused = `${countText(refusals, 'time')} by a limit of the host (429, 418), ${numberText(refusalsPerHour)} per hour`;
  return [...row('refused', refusals === 0 ? undefined : refused), ...row('bottleneck', bottleneckText(run))];
}

type Bottleneck = readonly [what: string, advice: string];

function bottleneckText(run: Diagnosed): string | undefined {
  const { waits, failures } = run.network.costMs;
  const costs: Readonly<Partial<Record<WaitReason | ErrorCode, number>>> = { ...waits, ...failures };
  const texts = { ...BOTTLENECKS, permit: longestWaits(run.network) };
  const [worst] = (Object.keys(texts) as (keyof typeof texts)[])
    .map((cost) => ({ text: texts[cost], ms: costs[cost] ?? 0 }))
    .toSorted((one, other) => other.ms - one.ms);
  if (worst === undefined || worst.ms < SHOWN_MS || worst.ms <= run.elapsedMs * SHOWN_SHARE) return undefined;
  const share = Math.min(100, Math.round((worst.ms / run.elapsedMs) * 100));
  const [what, advice] = worst.text;
  return `${what}, ${share} % of the run: ${advice}`;
}

const MORE_SOCKETS = 'a higher limit allows more requests at once';
const TIMEOUT = 'a shorter timeout ends hanging requests sooner, a longer one waits for a slow host';

/** Waits, and failed attempts by their error. */
const BOTTLENECKS = {
  pause: [
    'refusals by a limit of the host (429, 418)',
    'a longer --request-interval, or a lower --limits, sends fewer requests',
  ],
  socket: ['--pool-limit', MORE_SOCKETS],
  'socket-of-host': ['--pool-limit-per-host', MORE_SOCKETS],
  'retry-budget': [
    'retries that waited, because too many requests failed',
    'the host has a problem; a lower --concurrency sends no more requests than it can serve',
  ],
  'back-off': ['waits before retries', 'a shorter --retry-delay or --retry-max-delay retries sooner'],
  'retry-after': ['waits that the host asked for (Retry-After)', 'no flag shortens them'],
  breaker: ['--breaker-open', 'a shorter time tries a failed host again sooner'],
  'connect-timeout': ['--connect-timeout', TIMEOUT],
  'headers-timeout': ['--headers-timeout', TIMEOUT],
  'idle-timeout': ['--idle-timeout', TIMEOUT],
  'total-timeout': ['--total-timeout', TIMEOUT],
} as const satisfies Partial<Record<WaitReason | ErrorCode, Bottleneck>>;

/** The rate limit with the longest waits for permits. */
function longestWaits({ limiter }: NetworkFigures): Bottleneck {
  const [longest] = Object.entries(limiter.buckets).toSorted(
    ([, one], [, other]) => other.waitedMs - one.waitedMs,
  );
  const [name, bucket] = longest ?? ['requests'];
  return bucket?.isChosen === true
    ? [
        `your limit for ${name}`,
        'a higher --limits or --requests-per-minute, or a shorter --request-interval, raises it',
      ]
    : [`the limit of the exchange for ${name}`, 'no flag raises it'];
}

/** Fewer failed first attempts, or a smaller share of them, are usual: about one of a thousand fails. */
const LEAST_FAILURES = 10;
const FIRST_SHARE = 0.01;

/** A high failure rate of first attempts that successful retries hide. */
export function firstAttemptWarning(network: Pick<NetworkFigures, 'firstAttempts'>): string | undefined {
  const { requests, failed } = network.firstAttempts;
  if (failed < LEAST_FAILURES || failed < requests * FIRST_SHARE) return undefined;
  const percent = Math.round((failed / requests) * 1000) / 10;
  return `${percent} % of first attempts failed (${numberText(failed)} of ${numberText(requests)} requests), usual is 0.1 %: the host or the network has a problem, even if retries succeed`;
}
