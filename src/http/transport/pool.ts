/** The connections of a run (undici): one keep-alive pool per origin, or one agent per proxy. */
import { rootCertificates } from 'node:tls';
import { Client, EnvHttpProxyAgent, Pool } from 'undici';
import type { buildConnector, Dispatcher } from 'undici';
import type { Clock } from '../../model/clock.js';
import { DnsCache } from './dns-cache.js';
import type { DnsFigures } from './dns-cache.js';

export interface PoolOptions {
  /** Sockets per origin, at most. */
  readonly connections: number;
  /** Direct sockets of all origins together, at most. The caller must send no more requests at the same time. */
  readonly most?: number | undefined;
  /** The open sockets of all pools that share `most`; by default those of this call alone. */
  readonly open?: Set<Connection> | undefined;
  /** Milliseconds for which an idle socket is kept; 0 keeps none, but has no effect with `http2`. */
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly http2: boolean;
  /** Further trusted certificate authorities, in PEM. */
  readonly authorities: string | undefined;
  readonly proxies: {
    /** Proxy for `http:` addresses; empty: none. */
    readonly http: string;
    readonly https: string;
    /** Hosts without a proxy, in the form of `NO_PROXY`. */
    readonly except: string;
  };
  readonly clock: Pick<Clock, 'monotonic'>;
}

export interface PoolUse {
  readonly sockets: number;
  readonly busy: number;
  /** Requests that wait for a socket. */
  readonly queued: number;
  /** Sockets at most. */
  readonly most: number;
}

export interface Pools {
  /** The proxy of an address; undefined without one. NO_PROXY may still exclude the host. */
  proxyOf(url: string): URL | undefined;
  of(origin: string): Pick<Dispatcher, 'dispatch' | 'request'>;
  /** Use of direct connections. undici does not report the connections of a proxy agent. */
  use(): PoolUse;
  /** DNS figures of direct connections. */
  dns(): DnsFigures;
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
      dns.remove(new URL(origin).hostname);
    });
    return pool;
  };
  // One agent per proxy, with the same proxy for both schemes. Otherwise undici sends https through the proxy for http, or
  // takes a proxy from the environment.
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
      const open = pools.get(origin);
      if (open !== undefined) return open;
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
    dns: () => dns.figures,
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
    // An HTTP/2 connection takes many requests at the same time. In HTTP/1.1, 0 closes the connection after each request.
    ...(http2 ? {} : { pipelining: isKept ? 1 : 0 }),
    // A server may shorten the keep-alive time, but not extend it.
    ...(isKept ? { keepAliveTimeout: keepAliveMs, keepAliveMaxTimeout: keepAliveMs } : {}),
    // No timeouts of undici: the timeout layer also detects slow bodies, and does not count pauses of this machine.
    headersTimeout: 0,
    bodyTimeout: 0,
  };
}

export interface Connection {
  readonly client: Client;
  socket?: Parameters<buildConnector.Callback>[1];
}

/** Makes clients that together have at most `most` sockets: before a further one is opened, an idle one is closed. */
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
