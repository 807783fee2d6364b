/** The client of the SDK for one bucket: its server, its region and its credentials. */
import { CryptodlError } from '../model/errors.js';
import { region as parseRegion, url as parseUrl } from '../options/addresses.js';
import { CREDENTIALS } from './refusals.js';
import { S3Requests } from './requests.js';
import type { RequestOptions } from './requests.js';
import { loadSdk, statusOf } from './sdk.js';
import type { Client, Credentials, Sdk } from './sdk.js';

type Environment = Readonly<Record<string, string | undefined>>;
export type FindCredentials = () => Promise<Credentials>;

export interface ClientOptions extends RequestOptions {
  readonly environment: Environment;
  /** Default: the places in which the tools of AWS look. */
  readonly credentials?: FindCredentials | undefined;
}

const DEFAULT_REGION = 'us-east-1';

export class S3Access {
  readonly #options: ClientOptions;
  readonly #requests: S3Requests;
  readonly #endpoint: string | undefined;
  #region: string | undefined;
  /** Undefined before the first call, and when the client has a wrong region or old credentials. */
  #opened: Promise<readonly [Client, Sdk]> | undefined;

  /** Sends no request. Throws a usage error for a wrong address or region. */
  constructor(options: ClientOptions) {
    const { environment } = options;
    this.#options = options;
    this.#endpoint =
      options.options.s3Endpoint ??
      setting(environment, ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'], parseUrl);
    this.#region =
      options.options.s3Region ?? setting(environment, ['AWS_REGION', 'AWS_DEFAULT_REGION'], parseRegion);
    this.#requests = new S3Requests(options, {
      onRegion: (region) => {
        this.#follow(region);
      },
      onExpired: () => {
        this.#opened = undefined;
      },
    });
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
        if (this.#opened === opened || count === 2) throw this.#typed(error);
      }
    }
  }

  close(): Promise<void> {
    return this.#requests.close();
  }

  /** An answer that the SDK cannot read is an error of the server. */
  #typed(error: unknown): unknown {
    const isOfSdk = error instanceof Error && !(error instanceof CryptodlError) && '$metadata' in error;
    if (!isOfSdk || [404, 412, 501].includes(statusOf(error) ?? 0)) return error;
    return new CryptodlError(
      'http-protocol',
      `${this.#options.address.text}: ${error.message.slice(0, 300)}`,
    );
  }

  async #open(): Promise<readonly [Client, Sdk]> {
    const sdk = await loadSdk();
    const { credentials = ofEnvironment(this.#options.environment) } = this.#options;
    const endpoint = this.#endpoint === undefined ? {} : { endpoint: this.#endpoint };
    const config = {
      ...endpoint,
      ...(credentials === undefined ? {} : { credentials }),
      region: (this.#region ??= await regionOfProfile(sdk)),
      requestHandler: this.#requests,
      // The layers repeat requests.
      maxAttempts: 1,
      // The signature has the SHA-256 of each body, and other servers know no other checksum.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      expectContinueHeader: false,
      // Other programs renew the keys in the files of AWS.
      ignoreCache: true,
    } as const;
    const client = new sdk.S3Client(config);
    // The SDK reads the endpoint of a profile at the first request. Few servers but AWS have the bucket in the name of the host.
    Object.defineProperty(client.config, 'forcePathStyle', { get: () => client.config.isCustomEndpoint });
    await this.#checkCredentials(client);
    return [client, sdk];
  }

  /** Rejects with `lake-refused` if there are none, or if a header cannot carry them. The errors contain no value. */
  async #checkCredentials(client: Client): Promise<void> {
    const { clock, options, signal } = this.#options;
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

  #follow(region: string): void {
    if (region === this.#region) return;
    const { address, observer } = this.#options;
    observer.warn(
      `the bucket ${address.bucket} is in the region ${region}, not in ${this.#region}: requests go there; give --s3-region ${region}`,
    );
    this.#region = region;
    this.#opened = undefined;
  }
}

/** The first of these variables that is set, without blanks and line breaks at its ends. */
function setting<T>(
  environment: Environment,
  names: readonly string[],
  parse: (text: string, where: string) => T,
): T | undefined {
  const name = names.find((each) => trimmed(environment[each]) !== undefined);
  return name === undefined ? undefined : parse(trimmed(environment[name]) ?? '', name);
}

/** Files with one secret often end with a line break. */
function trimmed(text = ''): string | undefined {
  return text.trim() === '' ? undefined : text.trim();
}

async function regionOfProfile({ S3Client }: Sdk): Promise<string> {
  return new S3Client({}).config.region().catch(() => DEFAULT_REGION);
}

/** Undefined without both keys. */
function ofEnvironment(environment: Environment): Credentials | undefined {
  const accessKeyId = trimmed(environment['AWS_ACCESS_KEY_ID']);
  const secretAccessKey = trimmed(environment['AWS_SECRET_ACCESS_KEY']);
  const sessionToken = trimmed(environment['AWS_SESSION_TOKEN']);
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}
