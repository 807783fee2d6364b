/** Calls on a lake in a bucket: its mirror is open from the first item to the end of the call. */
import { CryptodlError } from '../model/errors.js';
import type { Verb } from '../options/flag-spec.js';
import type { Resolved } from '../options/resolve.js';
import type { VerbRequest } from '../options/verb-request.js';
import type { Credentials } from '../s3/credentials.js';
import { withAddresses } from '../text/mirror-roots.js';
import { libraryError } from './error.js';
import type { Hooks, S3Credentials } from './hooks.js';
import { isObject } from './options.js';

interface OpenedLake {
  readonly resolved: Resolved;
  /** The same plain data, with the address of the lake in place of the folder of its mirror. */
  readonly shown: <T>(value: T) => T;
  /** Publishes the last files and removes the mirror. The first call rejects with the error of this; later calls only wait. */
  readonly close: () => Promise<void>;
}

type LakeRequest = Pick<VerbRequest, 'clock' | 'observer' | 'resolved' | 'surroundings'>;

export async function openLake(
  verb: Verb,
  { clock, observer, resolved, surroundings }: LakeRequest,
  { s3Credentials }: Hooks,
): Promise<OpenedLake> {
  if (!/^s3:/i.test(resolved.options.out))
    return { resolved, shown: (value) => value, close: () => Promise.resolve() };
  const { Mirrors } = await import('../mirror/open-mirrors.js');
  const mirrors = new Mirrors(verb, {
    clock,
    surroundings,
    environment: process.env,
    warn: (message) => {
      observer.warn(message);
    },
    ...(s3Credentials === undefined ? {} : { credentials: () => given(s3Credentials) }),
  });
  let ended: Promise<void> | undefined;
  const close = (): Promise<void> => {
    if (ended !== undefined) return ended.catch(() => undefined);
    ended = mirrors.close();
    return ended;
  };
  try {
    const local = await mirrors.resolve(resolved);
    const { out } = local.options;
    const address = withAddresses(out);
    // A summary may be read after the mirror is closed.
    const text = (value: string): string => value.replaceAll(out, address);
    return { resolved: local, shown: (value) => replaced(value, text) as typeof value, close };
  } catch (error) {
    const known = libraryError(error);
    await close().catch(() => undefined);
    throw known;
  }
}

/** The items and the summary of `act`, with the address of the lake in place of the folder of its mirror. */
export async function* onLake<Item, Summary, Request extends LakeRequest>(
  verb: Verb,
  request: Request,
  hooks: Hooks,
  act: (request: Request) => AsyncGenerator<Item, Summary>,
): AsyncGenerator<Item, Summary> {
  const { resolved, shown, close } = await openLake(verb, request, hooks);
  const items = act({ ...request, resolved });
  try {
    for (;;) {
      const { done, value } = await items.next();
      if (done === true) return shown(value);
      yield shown(value);
    }
  } catch (error) {
    // The error is converted while the mirror is open, because it may name files in it.
    const known = libraryError(error);
    await close().catch(() => undefined);
    throw known;
  } finally {
    await items.return(undefined as never);
    await close();
  }
}

function replaced(value: unknown, text: (value: string) => string): unknown {
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return value.map((item) => replaced(item, text));
  if (!isObject(value) || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, replaced(field, text)]));
}

/** The errors contain no value. */
async function given(s3Credentials: S3Credentials): Promise<Credentials> {
  let found: unknown;
  try {
    found = typeof s3Credentials === 'function' ? await s3Credentials() : s3Credentials;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new CryptodlError('lake-refused', `s3Credentials: ${text.slice(0, 300)}`, { cause: error });
  }
  const fields: Readonly<Record<string, unknown>> = isObject(found) ? { ...found } : {};
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = fields;
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string')
    throw new CryptodlError('lake-refused', 's3Credentials gives no accessKeyId or no secretAccessKey');
  return {
    accessKeyId,
    secretAccessKey,
    ...(typeof sessionToken === 'string' ? { sessionToken } : {}),
    ...(expiration instanceof Date ? { expiresAt: expiration.getTime() } : {}),
  };
}
