/** Opens the bucket of a lake: its server, region and credentials come from flags, the environment and the files of AWS. */
import type { Clock } from '../model/clock.js';
import { parseLakeAddress } from '../model/lake-address.js';
import type { Observer } from '../model/observer.js';
import type { RequestCounts } from '../http/request-counts.js';
import type { Surroundings } from '../options/environment.js';
import { region as parseRegion, url as parseUrl } from '../options/addresses.js';
import type { Options } from '../options/flags.js';
import { S3Bucket } from './bucket.js';
import type { Bucket } from './bucket.js';
import { CredentialSource } from './credentials.js';
import type { FindCredentials } from './credentials.js';
import { findCredentials } from './find-credentials.js';
import { MULTIPART } from './multipart.js';
import type { MultipartSizes } from './multipart.js';
import { readProfile } from './profile-files.js';
import type { Profile } from './profile-files.js';
import { S3Requests } from './requests.js';

type Environment = Readonly<Record<string, string | undefined>>;

export interface BucketRequest {
  /** `s3://bucket/prefix` */
  readonly address: string;
  readonly options: Options;
  readonly surroundings: Surroundings;
  readonly environment: Environment;
  readonly clock: Clock;
  readonly observer: Observer;
  readonly signal: AbortSignal;
  /** Default: the places in which the tools of AWS look. */
  readonly credentials?: FindCredentials | undefined;
  readonly counts: RequestCounts;
  readonly multipart?: MultipartSizes | undefined;
}

const DEFAULT_REGION = 'us-east-1';

/** Sends no request. Throws a usage error for an address that is not one of a bucket. */
export function openBucket(request: BucketRequest): Bucket {
  const { options, environment, clock, observer } = request;
  const address = parseLakeAddress(request.address, '--out');
  const profile = readProfile(environment);
  const requests = new S3Requests({
    ...request,
    address,
    endpoint: options.s3Endpoint ?? endpointOf(environment, profile),
    region: options.s3Region ?? regionOf(environment, profile),
    credentials: new CredentialSource(request.credentials ?? findCredentials(environment), clock),
  });
  const warn = (message: string): void => {
    observer.warn(message);
  };
  return new S3Bucket({ address, requests, warn, multipart: request.multipart ?? MULTIPART });
}

/** The setting of the first of these variables, or that of the profile, without blanks and line breaks at its ends. */
function settingOf(
  environment: Environment,
  { name, settings }: Profile,
  variables: readonly string[],
  ofProfile: string,
): { readonly where: string; readonly value: string } | undefined {
  const places = variables.map((where) => ({ where, value: environment[where] }));
  places.push({ where: `${ofProfile} of the profile ${name}`, value: settings[ofProfile] });
  return places
    .map(({ where, value = '' }) => ({ where, value: value.trim() }))
    .find(({ value }) => value !== '');
}

function regionOf(environment: Environment, profile: Profile): string {
  const found = settingOf(environment, profile, ['AWS_REGION', 'AWS_DEFAULT_REGION'], 'region');
  return found === undefined ? DEFAULT_REGION : parseRegion(found.value, found.where);
}

function endpointOf(environment: Environment, profile: Profile): string | undefined {
  const variables = ['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'];
  const found = settingOf(environment, profile, variables, 'endpoint_url');
  return found === undefined ? undefined : parseUrl(found.value, found.where);
}
