/** The circuit breaker: stops requests to a host that keeps failing. */
import { CryptodlError, NO_CONNECTION, type ErrorCode } from '../../model/errors.js';
import { hostOf, type Layer } from '../../model/fetch.js';
import { Breaker, type BreakerOptions, type Result } from './host-breaker.js';

/** Error codes of requests that may not have reached the host. */
const NEVER_ANSWERED: ReadonlySet<ErrorCode> = new Set([...NO_CONNECTION, 'interrupted', 'wait-too-long']);

class Hosts {
  readonly #breakers = new Map<string, Breaker>();
  readonly #answered = new Set<string>();
  /** The last errors of hosts that never answered. */
  readonly #silent = new Map<string, CryptodlError>();

  constructor(private readonly options: BreakerOptions) {}

  enter(host: string): (result: Result) => void {
    const known = this.#breakers.get(host) ?? new Breaker(host, this.options);
    this.#breakers.set(host, known);
    try {
      return known.enter();
    } catch (error) {
      const last = this.#silent.get(host);
      // If no host has ever answered, the network of this machine is down. Waiting for it would look like a hang.
      const isHopeless = this.#answered.size === 0 || last?.code === 'host-unknown';
      // The other source (REST or the archive) may still have the data.
      if (!isHopeless || this.options.failover?.isPossible === true) throw error;
      if (last?.code === 'proxy-unreachable')
        throw new CryptodlError('unreachable', last.message, {
          cause: error,
          hint: last.hint,
          proxyFault: last.proxyFault,
        });
      const message =
        this.#answered.size === 0
          ? `${host} cannot be reached, and no other host answered either`
          : `there is no host ${host}`;
      const {
        hint = 'check the network, and the address of this host: --archive-url, --listing-url, --fallback-url, --fapi-url, --dapi-url or --spot-url',
      } = this.options;
      throw new CryptodlError('unreachable', message, { cause: error, hint });
    }
  }

  onAnswer(host: string): void {
    this.#answered.add(host);
    this.#silent.delete(host);
  }

  onError(host: string, error: unknown): void {
    if (!(error instanceof CryptodlError) || !NEVER_ANSWERED.has(error.code)) this.onAnswer(host);
    else if (!this.#answered.has(host)) this.#silent.set(host, error);
  }
}

function resultOf(error: unknown): Result {
  if (!(error instanceof CryptodlError)) return 'neutral';
  if (error.code === 'address-blocked') return 'blocked';
  return error.hostFault ? 'failure' : 'neutral';
}

/** The layer that stops requests to a failing host. A 404 is an answer; for other results see `Result`. */
export function breakerLayer(options: BreakerOptions): Layer {
  const hosts = new Hosts(options);
  return (next) => async (request, context) => {
    const host = hostOf(request.url);
    const leave = hosts.enter(host);
    try {
      const response = await next(request, context);
      hosts.onAnswer(host);
      leave('success');
      return response;
    } catch (error) {
      hosts.onError(host, error);
      leave(resultOf(error));
      throw error;
    }
  };
}
