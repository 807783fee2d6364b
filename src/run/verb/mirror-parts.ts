/** The parts of a mirror: its folder, the copies of its files, its bucket, and its end after a signal. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { stateFolder, type Surroundings } from '../../files/environment.js';
import { makeTempFolder, tempFolderOf, tempPath } from '../../files/temp-files.js';
import { FOLDERS } from '../../lake/layout.js';
import { FileCopies } from '../../lake/mirror/file-copies.js';
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError, toCryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { S3Credentials } from '../../model/lake-address.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import { bucketPlace } from '../../plan/options/addresses.js';
import type { Options } from '../../plan/options/flags.js';
import type { SessionFlag } from '../../plan/options/verb-request.js';
import { reasonOf } from '../../text/path-faults.js';
import { proxiesOf } from '../../files/proxies.js';

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
export function bucketOptions(options: Options<MirrorFlag>, caller: Caller) {
  const { environment, surroundings, warn } = caller;
  return {
    ...caller,
    observer: { ...SILENT_OBSERVER, warn },
    options: { ...options, ...bucketPlace(options, environment) },
    proxies: proxiesOf(options.proxy, surroundings),
  };
}

/** The folder of a mirror, for one command. Rejects with `disk` if the folder for temporary files cannot be used. */
export async function makeMirrorFolder(
  { tempDir }: Options<'temp-dir'>,
  { home }: Surroundings,
): Promise<string> {
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
export function copiesOf(
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
export function graceAfterSignals(
  { clock, onSignal }: Pick<Caller, 'clock' | 'onSignal'>,
  stop: AbortController,
) {
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
