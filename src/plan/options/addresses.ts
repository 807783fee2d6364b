/** Parsers for addresses and places: text in, checked text out, or a usage error that names the expected form. */
import { usage } from '../../model/errors.js';
import { isLakeAddress, parseLake } from '../../model/lake-address.js';
import { HOST_AND_PORT, readProxy } from '../../files/proxies.js';
import { text, type Parse } from './parsers.js';

/** A folder, or the address of a lake in a bucket. */
export const lake: Parse<string> = (value, where) => parseLake(text(value, where), where);

/** A folder, for what does not work on a bucket. */
export const localFolder: Parse<string> = (value, where) => {
  if (!isLakeAddress(value)) return text(value, where);
  throw usage(`${where} takes a local folder, and no bucket`, 'copy the folder from the bucket, or into it');
};

/** An address of one of these protocols, without line breaks and tabs, which the parser of addresses leaves out. Undefined for any other text. */
function addressIn(value: string, ...protocols: readonly string[]): URL | undefined {
  const address = /\p{Cc}/u.test(value) || !URL.canParse(value) ? undefined : new URL(value);
  return address !== undefined && protocols.includes(address.protocol) ? address : undefined;
}

/** An http(s) address that may have a query. Its path is a secret, so the errors contain only its host. */
export function secretUrl(example: string): Parse<string> {
  return (value, where) => {
    const address = addressIn(value, 'http:', 'https:');
    if (address !== undefined && address.hash + address.username + address.password === '') return value;
    throw noAddress(value, where, 'user name and password', example);
  };
}

/** An http(s) address without query → the address without a slash at its end. `host:port` is http: for this machine, else https:. */
export const url: Parse<string> = (value, where) => {
  const scheme = /^(?:localhost|127\.|\[::1\])/.test(value) ? 'http' : 'https';
  const isBare =
    /^(?:localhost|[\w-]+\.[\w.-]+|[\w-]+(?=:)|\[[\da-f:]+\])(?::\d{1,5})?(?:\/[\w./-]*)?$/i.test(value);
  const whole = isBare ? `${scheme}://${value}` : value;
  const address = addressIn(whole, 'http:', 'https:');
  const isPlain =
    address !== undefined && address.search + address.hash + address.username + address.password === '';
  if (isPlain) return whole.replace(/(?<!\/)\/+$/, '');
  throw noAddress(value, where, 'user name, password and query', 'http://127.0.0.1:8090');
};

/** The error has only the host: a query may contain a signature, and a second line another secret. */
const noAddress = (value: string, where: string, left: string, example: string): Error =>
  usage(
    `${where} ${hiddenAddress(value)} is not an http(s) address without ${left}`,
    `for example ${example}`,
  );

/** Stands for a secret address in texts that users pass on. */
export function hiddenAddress(value: string): string {
  const host = value.includes('://') && URL.canParse(value) ? new URL(value).host : '';
  return host === '' ? '(not shown)' : `(not shown; host ${host})`;
}

/**
 * An address, possibly with user and password, `host:port`, `none`, or `@FILE` with addresses. The error does not contain the value,
 * because of the password.
 */
export const proxy: Parse<string> = (value, where) => {
  const address = value === 'none' || /^@./.test(value) ? value : readProxy(value);
  if (address !== undefined) return address;
  throw usage(`${where} is not the address of a proxy`, 'for example http://127.0.0.1:3128');
};

/** The address of a Redis server, possibly with user, password and number of the database. The errors do not contain the value. */
export const redis: Parse<string> = (written, where) => {
  const value = HOST_AND_PORT.test(written) ? `redis://${written}` : written;
  const address = addressIn(value, 'redis:', 'rediss:');
  if (
    address !== undefined &&
    address.hostname !== '' &&
    (address.username === '' || address.password !== '') &&
    /^\/?\d{0,4}$/.test(address.pathname) &&
    address.search + address.hash === ''
  )
    return value;
  throw usage(
    `${where} is not the address of a Redis server`,
    'for example redis://127.0.0.1:6379, or with user, password and number of the database: redis://USER:PASSWORD@HOST:6379/0',
  );
};

/** The name of a region of S3; `auto` and other names of other providers are valid too. */
export const region: Parse<string> = (value, where) => {
  if (/^[a-zA-Z0-9-]{1,40}$/.test(value)) return value;
  // The value of a variable may be a secret in the wrong place.
  throw usage(`${where} is not the name of a region`, 'for example eu-central-1');
};

/** The server and the region of a bucket: those of the flags, or else those of the variables that the tools of AWS read. Throws a usage error for an invalid variable. */
export function bucketPlace(
  given: { readonly s3Endpoint: string | undefined; readonly s3Region: string | undefined },
  environment: Readonly<Record<string, string | undefined>>,
) {
  /** The first of these variables that is set, without blanks and line breaks at its ends. */
  const setting = (names: readonly string[], parse: Parse<string>): string | undefined => {
    const name = names.find((each) => (environment[each] ?? '').trim() !== '');
    return name === undefined ? undefined : parse((environment[name] ?? '').trim(), name);
  };
  return {
    s3Endpoint: given.s3Endpoint ?? setting(['AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL'], url),
    s3Region: given.s3Region ?? setting(['AWS_REGION', 'AWS_DEFAULT_REGION'], region),
  };
}
