/** Opens the bucket of a lake: its server, region and credentials come from flags, the environment and the files of AWS. */
import type { Clock } from '../model/clock.js';
import { usage } from '../model/errors.js';
import type { SharedResources } from '../model/io.js';
import type { Observer } from '../model/observer.js';
import type { RequestCosts, RequestFigures, RequestTimes } from '../http/observers.js';
import type { Surroundings } from '../options/environment.js';
import type { Options } from '../options/flags.js';
import { parseLakeAddress } from './address.js';
import { S3Bucket } from './bucket.js';
import type { Bucket } from './bucket.js';
import { CredentialSource, fromEnvironment } from './credentials.js';
import { MULTIPART } from './multipart.js';
import type { MultipartSizes } from './multipart.js';
import { S3Requests } from './requests.js';

export interface BucketRequest {
  /** `s3://bucket/prefix` */
  readonly address: string;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  /** Resources that the jobs of the process share. */
  readonly common?: SharedResources | undefined;
  readonly figures?: RequestFigures;
  readonly costs?: RequestCosts;
  readonly times?: RequestTimes;
  readonly pageSize?: number | undefined;
  readonly multipart?: MultipartSizes | undefined;
}

const DEFAULT_REGION = 'us-east-1';

/** Sends no request. Throws a usage error for an address that is not one of a bucket. */
export function openBucket(request: BucketRequest): Bucket {
  const { options, environment, clock, observer } = request;
  const address = parseLakeAddress(request.address, '--out');
  const set = (name: string): string | undefined => nonEmpty(environment[name]);
  const requests = new S3Requests({
    ...request,
    address,
    endpoint: options.s3Endpoint ?? endpointOf(set),
    region: options.s3Region ?? set('AWS_REGION') ?? set('AWS_DEFAULT_REGION') ?? DEFAULT_REGION,
    credentials: new CredentialSource([fromEnvironment(environment)], clock),
  });
  const warn = (message: string): void => {
    observer.warn(message);
  };
  const { pageSize, multipart = MULTIPART } = request;
  return new S3Bucket({ address, requests, warn, pageSize, multipart });
}

function endpointOf(set: (name: string) => string | undefined): string | undefined {
  const name = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'].find((candidate) => set(candidate) !== undefined);
  if (name === undefined) return undefined;
  const value = (set(name) ?? '').replace(/\/+$/, '');
  if (URL.canParse(value) && ['http:', 'https:'].includes(new URL(value).protocol)) return value;
  throw usage(`${name} is not an http(s) address`, `${name}=http://127.0.0.1:9000`);
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}
