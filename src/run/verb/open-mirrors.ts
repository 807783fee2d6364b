/** Gives a command the mirrors of the lakes in buckets that its options name. */
import { setMaxListeners } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempFolder, tempFolderOf, tempPath } from '../../files/temp-files.js';
import { RequestCounts } from '../../http/request-counts.js';
import { connectBacking } from '../../files/backing.js';
import { FOLDERS } from '../../lake/layout.js';
import { safeName } from '../../lake/safe-names.js';
import { ORDERS_FOLDER } from '../../lake/orders.js';
import type { Clock, Timer } from '../../model/clock.js';
import { CryptodlError, errnoOf, toCryptodlError } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import { SILENT_OBSERVER } from '../../model/observer.js';
import { bucketPlace } from '../../plan/options/addresses.js';
import { stateFolder, surroundingsOf } from '../../files/environment.js';
import { proxiesOf } from '../../files/proxies.js';
import type { Surroundings } from '../../files/environment.js';
import type { VerbSpec } from '../../plan/options/verb-spec.js';
import type { Options } from '../../plan/options/flags.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { SessionFlag } from '../../plan/options/verb-request.js';
import { isLakeAddress, parseLakeAddress } from '../../model/lake-address.js';
import type { LakeBucket } from '../../lake/s3/bucket.js';
import type { S3Credentials } from '../../model/lake-address.js';
import { ALL } from '../../exchange/names.js';
import { showAs } from '../../text/mirror-roots.js';
import { reasonOf } from '../../text/path-faults.js';
import { printLines } from '../../text/printable.js';
import { FileCopies } from '../../lake/mirror/file-copies.js';
import type { Mirror } from '../../lake/mirror/mirror.js';

/** Of every verb: a flag that it does not take has its default. */
export type MirrorFlag = SessionFlag | 'dataset' | 'fix' | 's3-endpoint' | 's3-region';

interface OpenMirror {
  readonly bucket: LakeBucket;
  readonly mirror: Mirror;
  readonly close: () => Promise<void>;
}

/** The folders outside of the series that a run writes, except for that of orders, which are published when they are written. */
const OF_RUNS = [
  FOLDERS.quarantine,
  FOLDERS.failures,
  `${FOLDERS.internal}/runs`,
  `${FOLDERS.internal}/debug`,
];

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

export function callerOf({ clock, environment, stderr, onSignal }: Io): Caller {
  const warn = (message: string): void => printLines(stderr, [`warning: ${message}`]);
  return { clock, environment, surroundings: surroundingsOf(environment), warn, onSignal };
}

/** The mirrors of a command. Each lake has one mirror. */
export class Mirrors {
  readonly #opened = new Map<string, Promise<OpenMirror>>();

  constructor(
    private readonly verb: VerbSpec,
    private readonly caller: () => Caller,
  ) {}

  /** The same options with the folder of a mirror in place of the address of a lake in a bucket. */
  async resolve<R extends Resolved<MirrorFlag>>(resolved: R): Promise<R> {
    const { options } = resolved;
    if (!isLakeAddress(options.out)) return resolved;
    const { mirror } = await this.open(options, partsOf(this.verb, resolved));
    // The mirror lies in --temp-dir, and the temporary files of a run lie in the mirror.
    const tempDir = this.verb.isReader === true ? options.tempDir : undefined;
    return { ...resolved, options: Object.freeze({ ...options, out: mirror.root, tempDir }) };
  }

  /** The local path of a file that is named by its address in a bucket, and that is brought in. Other paths stay as they are. */
  async fileAt(path: string, options: Options<MirrorFlag>): Promise<string> {
    if (!isLakeAddress(path)) return path;
    const { text } = parseLakeAddress(path, path);
    const at = text.search(/\/_failures\/[^/]+$/);
    const lake = at < 0 ? text.slice(0, text.lastIndexOf('/')) : text.slice(0, at);
    const { mirror } = await this.open({ ...options, out: lake });
    const local = mirror.root + text.slice(lake.length);
    await mirror.openFile(local);
    await mirror.bringIn([local]);
    return local;
  }

  /** Publishes the files outside of the series, and removes the mirrors. Rejects with the first error, after all mirrors were removed. */
  async close(): Promise<void> {
    const errors: unknown[] = [];
    for (const opened of this.#opened.values()) {
      try {
        await (await opened).close();
      } catch (error) {
        errors.push(error);
      }
    }
    this.#opened.clear();
    if (errors.length > 0) throw errors[0];
  }

  /** The mirror of a lake and its bucket. `parts`: the folders of the selected series; none: all. */
  open(options: Options<MirrorFlag>, parts: readonly string[] = []): Promise<OpenMirror> {
    const { text } = parseLakeAddress(options.out, '--out');
    const opened = this.#opened.get(text) ?? this.#make(text, options, parts);
    this.#opened.set(text, opened);
    return opened;
  }

  async #make(address: string, options: Options<MirrorFlag>, parts: readonly string[]): Promise<OpenMirror> {
    const caller = this.caller();
    const { clock, surroundings, warn } = caller;
    // Most commands have no bucket.
    const [{ LakeBucket: Bucket }, { Mirror: LakeMirror }] = await Promise.all([
      import('../../lake/s3/bucket.js'),
      import('../../lake/mirror/mirror.js'),
    ]);
    const stop = new AbortController();
    // Each request in flight adds a listener.
    setMaxListeners(0, stop.signal);
    const { signal } = stop;
    const counts = new RequestCounts();
    const signals = graceAfterSignals(caller, stop);
    const bucket = new Bucket({ ...bucketOptions(options, caller), counts, address, signal });
    const root = await makeMirrorFolder(options, surroundings);
    const isReader = this.verb.isReader === true;
    const copies = isReader ? copiesOf(address, options, surroundings) : undefined;
    const mirror = new LakeMirror({
      bucket,
      root,
      isReadOnly: options.dryRun || isReader || (this.verb.name === 'verify' && !options.fix),
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
        await this.#publishRest(mirror);
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
  async #publishRest(mirror: Mirror): Promise<void> {
    const { root } = mirror;
    await mirror.endPublications();
    for (const folder of [...OF_RUNS, '.']) await mirror.publishFolder(join(root, folder), false);
    await mirror.publishFolder(join(root, ORDERS_FOLDER));
    // These verbs move files after they have published their manifest, or without a change of it.
    if (['verify', 'repair'].includes(this.verb.name))
      for (const folder of await mirror.foldersInRoot()) await mirror.publishFolder(join(root, folder));
  }
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
    const why = reasonOf(errnoOf(error));
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

/** The folders of the selected series, relative to the folder of the exchange; none: all. */
function partsOf({ lakePart }: VerbSpec, { options, origins }: Resolved<'dataset' | 'market'>): string[] {
  const given = (name: 'market' | 'dataset'): readonly string[] =>
    origins[name] === 'default' || options[name].includes(ALL) ? [] : options[name];
  if (lakePart === 'klines of the markets') return options.market.map((market) => `${market}/klines`);
  if (lakePart === undefined) return [];
  const datasets = given('dataset').map((dataset) => `/${safeName(dataset)}`);
  return given('market').flatMap((market) =>
    (datasets.length === 0 ? [''] : datasets).map((dataset) => market + dataset),
  );
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
