/** The real wire: undici's pools and the transport over them, closed when the test is over. */
import { BINANCE_ANSWERS } from '../../src/exchange/binance/answers.js';
import dns from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/model/clock.js';
import type { Fetch } from '../../src/model/fetch.js';
import { NO_PROXIES } from '../../src/files/proxies.js';
import { UNLIMITED } from '../../src/http/transport/bandwidth.js';
import { createPools } from '../../src/http/transport/pool.js';
import type { PoolOptions, Pools } from '../../src/http/transport/pool.js';
import { timeoutLayer } from '../../src/http/transport/timeout.js';
import { createTransport } from '../../src/http/transport/transport.js';
import type { TransportOptions } from '../../src/http/transport/transport.js';

export function wirePools(options: Partial<PoolOptions> = {}): Pools {
  const pools = createPools({
    connections: 4,
    keepAliveMs: 30_000,
    connectTimeoutMs: 5000,
    http2: false,
    authorities: undefined,
    proxies: NO_PROXIES,
    clock: systemClock,
    ...options,
  });
  onTestFinished(() => pools.close());
  return pools;
}

/** Has this machine resolve names, until the test is over, to each of these answers in turn. Returns the names that it was asked for. */
export function resolving(...answers: readonly LookupAddress[][]): readonly string[] {
  const names: string[] = [];
  const systemLookup = dns.lookup;
  onTestFinished(() => {
    dns.lookup = systemLookup;
    syncBuiltinESMExports();
  });
  dns.lookup = ((name: string, _: unknown, tell: (error: null, all: unknown) => void) => {
    tell(null, answers[names.push(name) - 1]);
  }) as never;
  syncBuiltinESMExports();
  return names;
}

export function wire(options: Partial<PoolOptions & TransportOptions> = {}): Fetch {
  const transport = createTransport({
    pools: wirePools(options),
    clock: systemClock,
    bandwidth: UNLIMITED,
    ...BINANCE_ANSWERS,
    ...options,
  });
  return withoutDeadlines(transport);
}

/** The layer of timeouts with deadlines that no test reaches. The context of the test still gets each sign of progress. */
export function withoutDeadlines(transport: Fetch): Fetch {
  const [headersTimeoutMs, idleTimeoutMs, totalTimeoutMs] = [Infinity, Infinity, Infinity];
  const layer = timeoutLayer(systemClock, { headersTimeoutMs, idleTimeoutMs, totalTimeoutMs });
  return (request, context) =>
    layer((sent, inner) =>
      transport(sent, {
        ...inner,
        onActivity: (sign, value) => {
          inner.onActivity?.(sign, value);
          context.onActivity?.(sign, value);
        },
      }),
    )(request, context);
}
