/** Owner of undici: one keep-alive pool per origin, or the proxy in front of it. */
import { rootCertificates } from 'node:tls';
import { Client, EnvHttpProxyAgent, Pool } from 'undici';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../../model/clock.js';
import { DnsCache } from './dns-cache.js';
import type { DnsFigures } from './dns-cache.js';

export interface PoolOptions {
  /** Most sockets per origin. */
  readonly connections: number;
  /** Most direct sockets of all origins, of which no more are busy. */
  readonly most?: number | undefined;
  /** Sockets of all pools that share `most`; of this one alone when nothing is said. */
  readonly open?: Set<Connection> | undefined;
  /** How long an idle socket is kept; 0 keeps none. */
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly http2: boolean;
  /** PEM of authorities that are trusted besides the usual ones. */
  readonly authorities: string | undefined;
  readonly proxies: {
    /** For `http:` addresses; empty is none. */
    readonly http: string;
    readonly https: string;
    /** Hosts that are asked directly, as `NO_PROXY` has them. */
    readonly except: string;
  };
  readonly clock: Pick<Clock, 'monotonic'>;
}

export interface PoolUse {
  readonly sockets: number;
  readonly busy: number;
  /** Requests that wait for a socket. */
  readonly queued: number;
  /** Most sockets that there may be. */
  readonly most: number;
}

export interface Pools {
  /** Undefined when none is set; NO_PROXY may have the host asked directly all the same. */
  proxyOf(url: string): URL | undefined;
  of(origin: string): Pick<Dispatcher, 'dispatch' | 'request'>;
  /** Of direct connections: what a proxy agent holds, undici does not tell. */
  use(): PoolUse;
  /** Of direct connections as well. */
  names(): DnsFigures;
  close(): Promise<void>;
}

export function createPools(options: PoolOptions): Pools {
  const pools = new Map<string, Pool>();
  const agents = new Map<string, EnvHttpProxyAgent>();
  const dns = new DnsCache(options.clock);
  const tls = tlsOptions(options);
  const shared = socketOptions(options);
  const factory = options.most === undefined ? {} : { factory: clientsWithin(options.most, options.open) };
  const direct = (origin: string): Pool => {
    const pool = new Pool(origin, { ...shared, ...factory, connect: { ...tls, lookup: dns.lookup } });
    pool.on('connectionError', () => {
      dns.forget(new URL(origin).hostname);
    });
    return pool;
  };
  // undici would also send https through the proxy that is meant for http, and read the environment by itself.
  const through = (proxy: string): EnvHttpProxyAgent =>
    new EnvHttpProxyAgent({
      ...shared,
      connect: tls,
      requestTls: tls,
      proxyTls: tls,
      proxyTunnel: false,
      httpProxy: proxy,
      httpsProxy: proxy,
      noProxy: options.proxies.except,
    });
  const proxyOf = (url: string): string =>
    new URL(url).protocol === 'https:' ? options.proxies.https : options.proxies.http;
  return {
    proxyOf: (url) => (proxyOf(url) === '' ? undefined : new URL(proxyOf(url))),
    of: (origin) => {
      const proxy = proxyOf(origin);
      return proxy === '' ? known(pools, origin, direct) : known(agents, proxy, through);
    },
    use: () => {
      const stats = [...pools.values()].map((pool) => pool.stats);
      return {
        sockets: sumOf(stats.map(({ connected }) => connected)),
        busy: sumOf(stats.map(({ running }) => running)),
        queued: sumOf(stats.map(({ queued }) => queued)),
        most: Math.min(options.connections * pools.size, options.most ?? Number.POSITIVE_INFINITY),
      };
    },
    names: () => dns.figures,
    close: async () => {
      await Promise.all([...pools.values(), ...agents.values()].map((dispatcher) => dispatcher.destroy()));
    },
  };
}

function tlsOptions({ connectTimeoutMs, authorities }: PoolOptions): { timeout: number; ca?: string[] } {
  const timeout = connectTimeoutMs;
  return authorities === undefined ? { timeout } : { timeout, ca: [...rootCertificates, authorities] };
}

function socketOptions({ connections, http2, keepAliveMs }: PoolOptions): Pool.Options {
  const isKept = keepAliveMs > 0;
  return {
    connections,
    allowH2: http2,
    // Over HTTP/2 one connection takes many requests at once; 0 closes it after each.
    ...(http2 ? {} : { pipelining: isKept ? 1 : 0 }),
    // A server may ask for less, not for more.
    ...(isKept ? { keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs } : {}),
    // Our own timers see what undici's do not: a trickling body, a body under back-pressure.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}

export interface Connection {
  readonly client: Client;
  socket?: Parameters<buildConnector.Callback>[1];
}

/** Clients that have so many sockets together: for one more, an idle one is closed. */
function clientsWithin(most: number, open = new Set<Connection>()): (origin: URL, options: object) => Client {
  const makeRoom = (): void => {
    if (open.size < most) return;
    const idle = [...open].find(({ client, socket }) => socket !== undefined && client.stats.size === 0);
    if (idle === undefined) return;
    open.delete(idle);
    idle.socket?.destroy();
  };
  return (origin, given) => {
    const { connect, ...options } = given as Client.Options & { connect: buildConnector.connector };
    const client: Client = new Client(origin, {
      ...options,
      connect: (target, callback) => {
        makeRoom();
        const connection: Connection = { client };
        open.add(connection);
        connect(target, (...ended: Parameters<buildConnector.Callback>) => {
          const [error, socket] = ended;
          if (error === null && socket !== null) {
            connection.socket = socket;
            socket.once('close', () => open.delete(connection));
          } else open.delete(connection);
          callback(...ended);
        });
      },
    });
    return client;
  };
}

function known<T>(made: Map<string, T>, key: string, make: (key: string) => T): T {
  const there = made.get(key) ?? make(key);
  made.set(key, there);
  return there;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0);
}
