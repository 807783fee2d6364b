/** The connections of a run (undici): one keep-alive pool per origin, or one agent per proxy. */
import type { Socket } from 'node:net';
import { rootCertificates } from 'node:tls';
import { callbackify } from 'node:util';
import { buildConnector, Pool, ProxyAgent, type Dispatcher } from 'undici';
import type { Clock } from '../../model/clock.js';
import { proxyOf, type ProxyRules } from '../../files/proxies.js';
import { DnsCache } from './dns-cache.js';
import { openTunnel, TunnelError } from './socks.js';
import { clientsWithin, type SocketLimit } from './limited-clients.js';

export interface PoolOptions extends SocketLimit {
  /** Sockets per origin, at most. */
  readonly connections: number;
  /** Milliseconds for which an idle socket is kept; 0 keeps none, but has no effect with `http2`. */
  readonly keepAliveMs: number;
  readonly connectTimeoutMs: number;
  readonly http2: boolean;
  /** Further trusted certificate authorities, in PEM. */
  readonly authorities: string | undefined;
  readonly proxies: ProxyRules;
  readonly clock: Pick<Clock, 'monotonic'>;
}

export type Pools = ReturnType<typeof createPools>;

export function createPools(options: PoolOptions) {
  const pools = new Map<string, Pool>();
  const agents = new Map<string, ProxyAgent>();
  const dns = new DnsCache(options.clock);
  const tls = tlsOptions(options);
  const shared = socketOptions(options);
  const factory = clientsWithin(options);
  const proxied = (url: string): URL | undefined => {
    const proxy = proxyOf(url, options.proxies);
    return proxy === undefined ? undefined : new URL(proxy);
  };
  const open = (origin: string, proxy: URL | undefined): Pool => {
    const connect =
      proxy === undefined ? { ...tls, lookup: dns.lookup } : socksConnector(proxy, options, dns);
    const pool = new Pool(origin, { ...shared, factory, connect });
    pool.on('connectionError', () => dns.remove(new URL(origin).hostname));
    return pool;
  };
  const agentOf = (uri: string): ProxyAgent =>
    new ProxyAgent({ ...shared, uri, requestTls: tls, proxyTls: tls, proxyTunnel: false, factory: tunnels });
  return {
    /** The proxy of an address; undefined without one. */
    proxyOf: proxied,
    of: (origin: string): Pick<Dispatcher, 'dispatch' | 'request'> => {
      // The rules of proxies are read once for each origin, not for each request.
      const there = pools.get(origin);
      if (there !== undefined) return there;
      const proxy = proxied(origin);
      return proxy === undefined || proxy.protocol.startsWith('socks')
        ? known(pools, origin, () => open(origin, proxy))
        : known(agents, proxy.href, agentOf);
    },
    /** Connections that are direct or through SOCKS: undici does not report those of a proxy agent. `queued`: requests that wait for a socket. `most`: sockets. */
    use: () => {
      const sumOf = (figure: 'connected' | 'running' | 'queued'): number =>
        [...pools.values()].reduce((sum, { stats }) => sum + stats[figure], 0);
      return {
        sockets: sumOf('connected'),
        busy: sumOf('running'),
        queued: sumOf('queued'),
        most: Math.min(options.connections * pools.size, options.most ?? Number.POSITIVE_INFINITY),
      };
    },
    /** DNS figures of direct connections. */
    dns: () => dns.figures,
    close: async (): Promise<void> => {
      await Promise.all([...pools.values(), ...agents.values()].map((dispatcher) => dispatcher.destroy()));
    },
  };
}

const tunnels = (origin: string | URL, given: object): Pool =>
  new Pool(origin, { ...given, factory: clientsWithin({}) });

function tlsOptions({ connectTimeoutMs, authorities }: PoolOptions): { timeout: number; ca?: string[] } {
  const timeout = connectTimeoutMs;
  return authorities === undefined ? { timeout } : { timeout, ca: [...rootCertificates, authorities] };
}

/** Opens connections through a SOCKS5 proxy. With `socks5:`, this machine resolves the name of the host, otherwise the proxy. */
function socksConnector(proxy: URL, options: PoolOptions, dns: DnsCache): buildConnector.connector {
  const timeoutMs = options.connectTimeoutMs;
  // Connects to the proxy without TLS, and through its socket to a host with TLS.
  const connect = buildConnector({ ...tlsOptions(options), allowH2: options.http2 });
  const hostname = proxy.hostname.replaceAll(/[[\]]/g, '');
  const address = { hostname, host: proxy.host, protocol: 'http:', port: proxy.port || '1080' };
  const resolve = async (name: string): Promise<string> => {
    const all = await dns.addresses(name).catch((error: unknown) => {
      throw new TunnelError('host-unknown', `${name}: ${(error as Error).message}`);
    });
    // A proxy may have no IPv6.
    const [first] = all.toSorted((one, other) => one.family - other.family);
    if (first === undefined) throw new TunnelError('host-unknown', `${name}: no address`);
    return first.address;
  };
  const tunnel = callbackify(async (socket: Socket, name: string, port: number) => {
    const host = proxy.protocol === 'socks5:' ? await resolve(name) : name;
    await openTunnel(socket, proxy, { host, port, timeoutMs });
  });
  return (target, callback) => {
    const isSecure = target.protocol === 'https:';
    const port = Number(target.port || (isSecure ? 443 : 80));
    connect(address, (...[error, socket]) => {
      if (error !== null) {
        callback(error, null);
        return;
      }
      tunnel(socket, target.hostname, port, (failure: Error | null) => {
        if (failure !== null) {
          socket.destroy();
          callback(failure, null);
        } else if (isSecure) connect({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      });
    });
  };
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

function known<T>(made: Map<string, T>, key: string, make: (key: string) => T): T {
  const there = made.get(key) ?? make(key);
  made.set(key, there);
  return there;
}
