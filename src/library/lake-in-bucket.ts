/** Calls on a lake. The mirror of a lake in a bucket is open from the first item to the end of the call. */
import { removeLeftovers, tempFolderOf } from '../files/temp-files.js';
import { isLakeAddress } from '../model/lake-address.js';
import type { VerbSpec } from '../plan/options/verb-spec.js';
import type { MirrorFlag } from '../run/verb/make-mirror.js';
import type { VerbRequest } from '../plan/options/verb-request.js';
import { withAddresses } from '../text/mirror-roots.js';
import { libraryError } from './items.js';
import type { Hooks } from './options.js';
import { isRecord } from '../text/json.js';

type LakeRequest = Pick<VerbRequest<MirrorFlag>, 'clock' | 'observer' | 'resolved' | 'surroundings'>;

/** The items and the summary of `act`, with the address of the lake in place of the folder of its mirror. */
export async function* onLake<Item, Summary, Request extends LakeRequest>(
  verb: VerbSpec,
  request: Request,
  hooks: Hooks,
  act: (request: Request) => AsyncGenerator<Item, Summary>,
): AsyncGenerator<Item, Summary> {
  const { resolved: asGiven, surroundings, clock, observer } = request;
  await removeLeftovers(tempFolderOf(asGiven.options.tempDir, surroundings.home));
  if (!isLakeAddress(asGiven.options.out)) return yield* act(request);
  const { Mirrors } = await import('../run/verb/open-mirrors.js');
  const { s3Credentials } = hooks;
  const mirrors = new Mirrors(verb, () => ({
    clock,
    surroundings,
    environment: process.env,
    warn: observer.warn.bind(observer),
    ...(s3Credentials === undefined ? {} : { credentials: s3Credentials }),
  }));
  try {
    const resolved = await mirrors.resolve(request.resolved);
    return yield* withShownPaths(act({ ...request, resolved }));
  } catch (error) {
    // The error is converted while the mirror is open, because it may name files in it. It is more important than that of the end.
    const known = libraryError(error);
    await mirrors.close().catch(() => undefined);
    throw known;
  } finally {
    await mirrors.close();
  }
}

async function* withShownPaths<Item, Summary>(
  items: AsyncGenerator<Item, Summary>,
): AsyncGenerator<Item, Summary> {
  try {
    for (;;) {
      const { done, value } = await items.next();
      if (done === true) return inAddresses(value) as Summary;
      yield inAddresses(value) as Item;
    }
  } finally {
    await items.return(undefined as never);
  }
}

function inAddresses(value: unknown): unknown {
  if (typeof value === 'string') return withAddresses(value);
  if (Array.isArray(value)) return value.map(inAddresses);
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, inAddresses(field)]));
}
