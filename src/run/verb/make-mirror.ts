/** Makes the mirror of a lake in a bucket, for one command. */
import { setMaxListeners } from 'node:events';
import { rm, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { connectBacking } from '../../files/backing.js';
import { RequestCounts } from '../../http/request-counts.js';
import { FOLDERS } from '../../lake/layout.js';
import { Mirror } from '../../lake/mirror/mirror.js';
import { ORDERS_FOLDER } from '../../lake/orders.js';
import { LakeBucket } from '../../lake/s3/bucket.js';
import type { Options } from '../../plan/options/flags.js';
import type { VerbSpec } from '../../plan/options/verb-spec.js';
import { showAs } from '../../text/mirror-roots.js';
import { stateFolder, type Surroundings } from '../../files/environment.js';
import { makeTempFolder, tempFolderOf, tempPath } from '../../files/temp-files.js';
import { FileCopies } from '../../lake/mirror/file-copies.js';
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { S3Credentials } from '../../model/lake-address.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import { bucketPlace } from '../../plan/options/addresses.js';
import type { SessionFlag } from '../../plan/options/verb-request.js';
import { reasonOf } from '../../text/path-faults.js';
import { proxiesOf } from '../../files/proxies.js';

export type OpenMirror = Awaited<ReturnType<typeof makeMirror>>;

interface MirroredLake {
  readonly address: string;
  readonly options: Options<MirrorFlag>;
  /** The folders of the selected series; none: all. */
  readonly parts: readonly string[];
}

/** The folders outside of the series that a run writes, except for that of orders, which are published when they are written. */
const OF_RUNS = [
  FOLDERS.quarantine,
  FOLDERS.failures,
  `${FOLDERS.internal}/runs`,
  `${FOLDERS.internal}/debug`,
];

/** Makes a mirror and connects it. Rejects with `disk` if the folder for temporary files cannot be used. */
export async function makeMirror(verb: VerbSpec, caller: Caller, { address, options, parts }: MirroredLake) {
  const { clock, surroundings, warn } = caller;
  const stop = new AbortController();
  // Each request in flight adds a listener.
  setMaxListeners(0, stop.signal);
  const { signal } = stop;
  const counts = new RequestCounts();
  const signals = graceAfterSignals(caller, stop);
  const bucket = new LakeBucket({ ...bucketOptions(options, caller), counts, address, signal });
  const root = await makeMirrorFolder(options, surroundings);
  const isReader = verb.isReader === true;
  const copies = isReader ? copiesOf(address, options, surroundings) : undefined;
  const mirror = new Mirror({
    bucket,
    root,
    isReadOnly: options.dryRun || isReader || (verb.name === 'verify' && !options.fix),
    comparesVersions: !isReader,
    copies,
    parts,
    clock,
    requests: counts,
    warn,
    onPublication: signals.watch,
  });
  const disconnect = connectBacking(mirror);
  const unshow = showAs(root, address);
  const close = async (): Promise<void> => {
    try {
      await publishRest(mirror, verb);
    } catch (error) {
      if (!signal.aborted) throw error;
      warn(`${address} does not have all changes of this command: it was ended; run the command again`);
    } finally {
      signals.release();
      disconnect();
      await bucket.close();
      await rm(root, { recursive: true, force: true });
      await copies?.prune();
      unshow();
    }
  };
  return { bucket, mirror, close };
}

/** Publishes what no publication of a series has. */
async function publishRest(mirror: Mirror, verb: VerbSpec): Promise<void> {
  const { root } = mirror;
  await mirror.endPublications();
  for (const folder of [...OF_RUNS, '.']) await mirror.publishFolder(join(root, folder), false);
  await mirror.publishFolder(join(root, ORDERS_FOLDER));
  // These verbs move files after they have published their manifest, or without a change of it.
  if (['verify', 'repair'].includes(verb.name))
    for (const folder of await mirror.foldersInRoot()) await mirror.publishFolder(join(root, folder));
}

/** Of every verb: a flag that it does not take has its default. */
export type MirrorFlag = SessionFlag | 'dataset' | 'fix' | 's3-endpoint' | 's3-region';

/** What the program or a call of the library gives to the mirrors. */
export interface Caller {
  readonly clock: Clock;
  readonly environment: Io['environment'];
  readonly surroundings: Surroundings;
  readonly warn: (message: string) => void;
  /** Default: no signals. */
  readonly onSignal?: Io['onSignal'];
  /** Default: the places in which the tools of AWS look. */
  readonly credentials?: S3Credentials;
}

/** The options of a bucket, with the server and the region that the environment names. */
function bucketOptions(options: Options<MirrorFlag>, caller: Caller) {
  const { environment, surroundings, warn } = caller;
  return {
    ...caller,
    observer: { ...SILENT_OBSERVER, warn },
    options: { ...options, ...bucketPlace(options, environment) },
    proxies: proxiesOf(options.proxy, surroundings),
  };
}

/** The folder of a mirror, for one command. Rejects with `disk` if the folder for temporary files cannot be used. */
async function makeMirrorFolder({ tempDir }: Options<'temp-dir'>, { home }: Surroundings): Promise<string> {
  const parent = tempFolderOf(tempDir, home);
  const root = tempPath(parent, 'mirror');
  try {
    await makeTempFolder(root);
    await mkdir(join(root, FOLDERS.internal, 'mirror'), { recursive: true });
    return root;
  } catch (error) {
    if (toCryptodlError(error).code === 'disk-full') throw error;
    const flag = tempDir === undefined ? 'the temporary folder' : '--temp-dir';
    const why = reasonOf(error);
    throw new CryptodlError('disk', `${flag} ${parent} cannot hold the mirror of the lake (${why})`, {
      cause: error,
      hint: 'choose a writable --temp-dir',
    });
  }
}

/** Undefined if this user has no folder for them. */
function copiesOf(
  address: string,
  options: Options<'state-dir'>,
  surroundings: Surroundings,
): FileCopies | undefined {
  try {
    return new FileCopies(join(stateFolder(options, surroundings), 'buckets'), address);
  } catch {
    return undefined;
  }
}

/** Publications that a signal has found under way end within this time. A second signal ends the process. */
const GRACE_MS = 5000;

/** Ends the requests of a bucket some time after a signal: a bucket that does not answer is waited for no longer. */
function graceAfterSignals({ clock, onSignal }: Pick<Caller, 'clock' | 'onSignal'>, stop: AbortController) {
  let release: (() => void) | undefined;
  let timer: Timer | undefined;
  return {
    /** Call at the first publication: before, a signal must end a command that does not listen. */
    watch: (): void => {
      release ??= onSignal?.((signal) => {
        timer ??= clock.timer(GRACE_MS, () => {
          stop.abort(new CryptodlError('interrupted', `ended by ${signal}`));
        });
      });
    },
    release: (): void => {
      release?.();
      timer?.cancel();
    },
  };
}
