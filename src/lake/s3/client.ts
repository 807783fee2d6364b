/** The client of the SDK of AWS for one bucket, with its server, region and credentials. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { FetchRequest, FetchResponse, Layer } from '../../model/fetch.js';
import type { RequestCounts } from '../../http/request-counts.js';
import { createStack } from '../../http/stack.js';
import type { Stack, StackOptions } from '../../http/stack-options.js';
import type { Clock } from '../../model/clock.js';
import { CryptodlError, isNoAnswer } from '../../model/errors.js';
import type { LakeAddress, S3Credentials } from '../../model/lake-address.js';
import type { Observer } from '../../model/observer.js';
import { durationText } from '../../model/units.js';
import { CREDENTIALS, errorName, hideIn, HINTS, readRefusals } from './refusals.js';
import { ofEnvironment, loadSdk, statusOf, BUCKET, fetchRequestOf } from './sdk.js';
import type { Sdk, Client, Environment, SdkRequest, Transfer } from './sdk.js';

export interface ClientOptions {
  readonly address: LakeAddress;
  readonly options: Omit<StackOptions['options'], 'mostInFlight'> & {
    /** Undefined: the address of AWS, or that of a profile. */
    readonly s3Endpoint: string | undefined;
    /** Undefined: the region of a profile. */
    readonly s3Region: string | undefined;
  };
  readonly proxies: StackOptions['proxies'];
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  readonly counts: RequestCounts;
  readonly environment: Environment;
  /** Default: the places in which the tools of AWS look. */
  readonly credentials?: S3Credentials | undefined;
}

interface Signed {
  readonly secrets: Readonly<Record<string, string>>;
  readonly check: (answer: FetchResponse) => void;
}

/** Requests per second below the limits of AWS: 3,500 writes and 5,500 reads of a prefix (S3 user guide, "Optimizing performance"). */
const REQUESTS_PER_SECOND = 2000;
/** A request waits so long for a bucket that has answered before, besides --retries: its server may restart, and its network may fail for a while. */
const LONGEST_OUTAGE_MS = 2 * 60_000;
const LONGEST_DELAY_MS = 15_000;
/** Requests at once for which there are sockets. */
const MOST_AT_ONCE = 32;
const HINT = 'check the network and --s3-endpoint';

const DEFAULT_REGION = 'us-east-1';

/** Calls the SDK, which signs its requests. Their retries, limits, proxies and timeouts are those of the layers of all requests. */
export class S3Access {
  readonly #stack: Stack;
  #region: string | undefined;
  /** Undefined before the first call, and when the client has a wrong region or old credentials. */
  #opened: Promise<readonly [Client, Sdk]> | undefined;
  /** The headers with credentials, by the id of the request. Only the innermost layer adds them, so that no observer sees them. */
  readonly #signed = new Map<string, Signed>();
  #hasAnswered = false;
  #hasWarned = false;

  /** Sends no request. */
  constructor(private readonly options: ClientOptions) {
    this.#region = options.options.s3Region;
    this.#stack = createStack(this.#stackOptions());
  }

  /**
   * Calls the SDK. The call is repeated once if an answer has changed the region or ended a session. Rejects with typed errors, and with
   * errors of the SDK for the statuses 404, 412 and 501.
   */
  async call<T>(act: (client: Client, sdk: Sdk) => Promise<T>): Promise<T> {
    for (let count = 1; ; count += 1) {
      this.#opened ??= this.#open();
      const opened = this.#opened;
      const [client, sdk] = await opened.catch((error: unknown) => {
        this.#opened = undefined;
        throw error;
      });
      try {
        return await act(client, sdk);
      } catch (error) {
        if (this.#opened !== opened && count < 2) continue;
        const status = statusOf(error);
        if (status === undefined || [404, 412, 501].includes(status)) throw error;
        // The SDK cannot read the answer.
        const text = error instanceof Error ? error.message.slice(0, 300) : '';
        throw new CryptodlError('http-protocol', `${this.options.address.text}: ${text}`);
      }
    }
  }

  close(): Promise<void> {
    return this.#stack.close();
  }

  async #open(): Promise<readonly [Client, Sdk]> {
    const sdk = await loadSdk();
    const { credentials = ofEnvironment(this.options.environment) } = this.options;
    const { s3Endpoint } = this.options.options;
    const endpoint = s3Endpoint === undefined ? {} : { endpoint: s3Endpoint };
    const config = {
      ...endpoint,
      ...(credentials === undefined ? {} : { credentials }),
      region: (this.#region ??= await new sdk.S3({}).config.region().catch(() => DEFAULT_REGION)),
      requestHandler: { handle: this.#handle.bind(this) },
      // The layers repeat requests.
      maxAttempts: 1,
      // The signature has the SHA-256 of each body, and other servers know no other checksum.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      expectContinueHeader: false,
      // Other programs renew the keys in the files of AWS.
      ignoreCache: true,
    } as const;
    const client = new sdk.S3(config);
    // The SDK reads the endpoint of a profile at the first request. Few servers but AWS have the bucket in the name of the host.
    Object.defineProperty(client.config, 'forcePathStyle', { get: () => client.config.isCustomEndpoint });
    await this.#checkCredentials(client);
    return [client, sdk];
  }

  /** Rejects with `lake-refused` if there are none, or if a header cannot carry them. The errors contain no value. */
  async #checkCredentials(client: Client): Promise<void> {
    const { clock, options, signal } = this.options;
    const found = new AbortController();
    const late = clock.sleep(options.totalTimeoutMs, AbortSignal.any([signal, found.signal])).then(() => {
      throw new CryptodlError('total-timeout', 'the credentials of the bucket did not come in time');
    });
    try {
      const {
        accessKeyId,
        secretAccessKey,
        sessionToken = '',
      } = await Promise.race([client.config.credentials(), late]);
      if (/^[\x20-\x7e]+$/.test(accessKeyId + secretAccessKey + sessionToken)) return;
      throw new CryptodlError(
        'lake-refused',
        'the credentials of the bucket have a line break or a character that is not ASCII',
        { hint: CREDENTIALS },
      );
    } catch (error) {
      if (error instanceof CryptodlError || signal.aborted) throw error;
      const text = error instanceof Error ? error.message.slice(0, 300) : '';
      throw new CryptodlError('lake-refused', `no credentials for the bucket were found: ${text}`, {
        cause: error,
        hint: `${CREDENTIALS}, or log in again (aws sso login)`,
      });
    } finally {
      found.abort();
    }
  }

  readonly #follow = (region: string): void => {
    if (region === this.#region) return;
    const { address, observer } = this.options;
    observer.warn(
      `the bucket ${address.bucket} is in the region ${region}, not in ${this.#region}: requests go there; give --s3-region ${region}`,
    );
    this.#region = region;
    this.#opened = undefined;
  };

  /**
   * Resolves with 200, 404, 412 or 501. Rejects with `lake-refused` or `lake-unreachable`, which end the run, or with another
   * typed error of the request. The body of a GET is only for `onAnswer`.
   */
  async #handle(request: SdkRequest, transfer: Transfer = {}) {
    const id = randomUUID();
    const {
      authorization = '',
      'x-amz-security-token': token,
      'user-agent': _,
      ...headers
    } = request.headers;
    const secrets = { authorization, ...(token === undefined ? {} : { 'x-amz-security-token': token }) };
    this.#signed.set(id, { secrets, check: transfer.check ?? refuseError });
    try {
      const fetched = fetchRequestOf({ ...request, headers }, transfer);
      const answer = await this.#outlast(() => this.#answered(fetched, id));
      transfer.onAnswer?.(answer);
      const isGiven = request.method === 'GET' && answer.status === 200;
      const body = isGiven || answer.body.kind === 'file' ? Readable.from([]) : answer.body.bytes;
      return { response: { statusCode: answer.status, headers: { ...answer.headers }, body } };
    } catch (error) {
      throw hideIn(error, token);
    } finally {
      this.#signed.delete(id);
    }
  }

  async #answered(request: FetchRequest, traceId: string): Promise<FetchResponse> {
    const { address, signal } = this.options;
    try {
      const answer = await this.#stack.fetch(request, { signal, traceId });
      const name = answer.status === 404 ? errorName(answer.body) : undefined;
      if (name !== 'NoSuchBucket') return answer;
      const hint = HINTS.get(name);
      throw new CryptodlError('lake-refused', `${new URL(request.url).host} answered ${name}`, { hint });
    } catch (error) {
      if (!(error instanceof CryptodlError)) throw error;
      if (error.code === 'lake-refused') throw error.with({ message: `${address.text}: ${error.message}` });
      if (!isNoAnswer(error) || error.code === 'wait-too-long') throw error;
      const after = error.attempts > 1 ? ` after ${error.attempts} attempts` : '';
      throw new CryptodlError(
        'lake-unreachable',
        `${address.text} cannot be reached${after}: ${error.message}`,
        { cause: error, hint: `${HINT}, and try again; committed files are kept` },
      );
    }
  }

  /** Repeats a request that ends with `lake-unreachable`. A bucket that has never answered is not waited for, because its address may be wrong. */
  async #outlast(request: () => Promise<FetchResponse>): Promise<FetchResponse> {
    const { address, clock, observer, signal, options } = this.options;
    const longestMs = Math.min(LONGEST_OUTAGE_MS, options.maxWaitMs);
    const until = clock.monotonic() + longestMs;
    for (let delayMs = options.retryMaxDelayMs; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      try {
        const answer = await request();
        this.#hasAnswered = true;
        this.#hasWarned = false;
        return answer;
      } catch (error) {
        const isOutage = error instanceof CryptodlError && error.code === 'lake-unreachable';
        if (!isOutage || !this.#hasAnswered || clock.monotonic() + delayMs > until) throw error;
        if (!this.#hasWarned)
          observer.warn(
            `${address.text} does not answer: requests are repeated for up to ${durationText(longestMs)}`,
          );
        this.#hasWarned = true;
        await clock.sleep(delayMs / 2 + (clock.random() * delayMs) / 2, signal);
      }
    }
  }

  #stackOptions(): StackOptions {
    const { options, counts, ...more } = this.options;
    const url = options.s3Endpoint ?? 'https://s3.amazonaws.com';
    return {
      ...more,
      options: {
        ...options,
        mostInFlight: MOST_AT_ONCE,
        // These limits are those of an exchange.
        limits: [],
        requestIntervalMs: undefined,
        requestsPerMinute: undefined,
      },
      hosts: {
        buckets: { [BUCKET]: { permitsPerSecond: REQUESTS_PER_SECOND, burst: REQUESTS_PER_SECOND } },
        archiveUrl: url,
        listingUrl: url,
        fallbackUrl: undefined,
        restUrls: {},
        knownUrls: [],
        bannedWith: (host) => [host],
        hint: HINT,
        usedPermits: () => 0,
        readRefusal: readRefusals(this.#follow, () => {
          this.#opened = undefined;
        }),
      },
      sign: this.#sign,
      bans: { leftMs: () => Promise.resolve(0), record: () => undefined },
      figures: counts,
      followers: [counts],
      stateFolder: undefined,
      isLate: () => false,
    };
  }

  readonly #sign: Layer = (next) => async (request, context) => {
    const { secrets = {}, check } = this.#signed.get(context.traceId) ?? {};
    try {
      const answer = await next({ ...request, headers: { ...request.headers, ...secrets } }, context);
      check?.(answer);
      return answer;
    } catch (error) {
      // A server may answer with what it was sent.
      throw hideIn(error, secrets['x-amz-security-token']);
    }
  };
}

/** S3 may send an error document with status 200 while it puts parts together: it is an error of the server. */
export function refuseError({ status, body }: FetchResponse): void {
  const error = status === 200 ? errorName(body) : undefined;
  if (error === undefined) return;
  throw new CryptodlError('http-server-error', `the server answered ${error} with status 200`);
}
