/** Owner of undici: one keep-alive pool per origin. */
import { Pool } from 'undici';

export interface PoolOptions {
  /** Most sockets per origin. */
  readonly connections: number;
  readonly connectTimeoutMs: number;
}

export interface Pools {
  of(url: string): Pool;
  close(): Promise<void>;
}

export function createPools(options: PoolOptions): Pools {
  const pools = new Map<string, Pool>();
  return {
    of: (url) => {
      const { origin } = new URL(url);
      const known = pools.get(origin);
      if (known !== undefined) return known;
      const pool = new Pool(origin, {
        connections: options.connections,
        pipelining: 1,
        allowH2: false,
        connect: { timeout: options.connectTimeoutMs },
        keepAliveTimeout: 30_000,
        // Our own timers see what undici's do not: a trickling body, a body under back-pressure.
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      pools.set(origin, pool);
      return pool;
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}
