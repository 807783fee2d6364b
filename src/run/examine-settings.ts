/** What runs would do with the options and with this machine, as `cryptodl doctor` looks at it. */
import type { Finding } from '../doctor/finding.js';
import { checkFiles, checkMemory, checkThreads } from '../doctor/machine.js';
import { checkBreaker, checkConcurrency, checkPool, checkRetries } from '../doctor/request-settings.js';
import type { Scene } from './examine-hosts.js';
import { ARCHIVE_MOST, REST_MOST } from './limits.js';
import { mostInFlight, socketsPerHost } from './sockets.js';
import { backoffOf } from './stack.js';

export function examineSettings({ options, limits, hosts }: Scene): Finding[] {
  const { concurrency: choice } = options;
  const most = mostInFlight(options);
  const connections = socketsPerHost(options);
  const maxWaitMs = options['max-wait'];
  const process = limits();
  return [
    checkMemory(process),
    checkFiles({ openFiles: process.openFiles, most, sockets: connections }),
    checkThreads(process.threads),
    checkConcurrency({ choice, archiveMost: ARCHIVE_MOST, restMost: REST_MOST }),
    checkRetries({
      ...backoffOf(options),
      preset: options['retry-preset'],
      givenFactor: options['retry-factor'],
      maxWaitMs,
    }),
    checkBreaker({
      failures: options['breaker-failures'],
      successes: options['breaker-successes'],
      openMs: options['breaker-open'],
      blockedMs: options['blocked-wait'],
      maxWaitMs,
    }),
    checkPool({
      most,
      limit: options['pool-limit'],
      limitPerHost: options['pool-limit-per-host'],
      connections,
      keepAliveMs: options['keep-alive'],
      hasTls: options.http2 !== true && hosts.some(({ address }) => address.startsWith('https:')),
    }),
  ];
}
