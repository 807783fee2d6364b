/** Gives a command the mirrors of the lakes in buckets that its options name. */
import { setMaxListeners } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempFolder, tempFolderOf, tempPath } from '../files/temp-files.js';
import { RequestCounts } from '../http/request-counts.js';
import { connectBacking } from '../lake/backing.js';
import type { BackingTrial } from '../lake/backing.js';
import { FOLDERS, safeName } from '../lake/layout.js';
import { ORDERS_FOLDER } from '../lake/orders.js';
import type { Clock, Timer } from '../model/clock.js';
import { CryptodlError, errnoOf, toCryptodlError } from '../model/errors.js';
import type { Io } from '../model/io.js';
import { SILENT_OBSERVER } from '../model/observer.js';
import { stateFolder, surroundingsOf } from '../options/environment.js';
import type { Surroundings } from '../options/environment.js';
import type { Verb } from '../options/flag-spec.js';
import type { Options } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { isLakeAddress, parseLakeAddress } from '../model/lake-address.js';
import { LakeBucket } from '../s3/bucket.js';
import type { FindCredentials } from '../s3/client.js';
import { ALL } from '../source/names.js';
import { showAs } from '../text/mirror-roots.js';
import { reasonOf } from '../text/path-faults.js';
import { printLines } from '../text/printable.js';
import { FileCopies } from './file-copies.js';
import { Mirror } from './mirror.js';

interface OpenMirror {
  readonly bucket: LakeBucket;
  readonly mirror: Mirror;
  readonly close: () => Promise<void>;
}

/** Verbs that only read a lake. `verify` writes with --fix, and `universe` with --fetch. */
const READERS: ReadonlySet<Verb> = new Set<Verb>([
  'check',
  'coverage',
  'sql',
  'runs',
  'report',
  'plot',
  'export',
  'doctor',
  'enqueue',
]);
/** The folders outside of the series that a run writes. */
const OF_RUNS = [
  FOLDERS.quarantine,
  FOLDERS.failures,
  `${FOLDERS.internal}/runs`,
  ORDERS_FOLDER,
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
  readonly credentials?: FindCredentials;
}

export function callerOf({ clock, environment, stderr, onSignal }: Io): Caller {
  const warn = (message: string): void => {
    printLines(stderr, [`warning: ${message}`]);
  };
  return { clock, environment, surroundings: surroundingsOf(environment), warn, onSignal };
}

/** The mirrors of a command. Each lake has one mirror. */
export class Mirrors {
  readonly #verb: Verb;
  readonly #caller: Caller;
  readonly #opened = new Map<string, Promise<OpenMirror>>();

  constructor(verb: Verb, caller: Caller) {
    this.#verb = verb;
    this.#caller = caller;
  }

  /** The same options with the folder of a mirror in place of the address of a lake in a bucket. */
  async resolve<R extends Resolved>(resolved: R): Promise<R> {
    const { options } = resolved;
    if (!isLakeAddress(options.out)) return resolved;
    const { mirror } = await this.#open(options, partsOf(this.#verb, resolved));
    // The mirror lies in --temp-dir, and the temporary files of a run lie in the mirror.
    const tempDir = READERS.has(this.#verb) ? options.tempDir : undefined;
    return { ...resolved, options: Object.freeze({ ...options, out: mirror.root, tempDir }) };
  }

  /** The bucket of a lake, for objects that no mirror has. */
  async bucketOf({ options }: Resolved): Promise<LakeBucket> {
    return (await this.#open(options)).bucket;
  }

  /** Tries whether the bucket of a lake keeps the conditions of writes. */
  async tryOut({ options }: Resolved): Promise<BackingTrial> {
    return (await this.#open(options)).mirror.tryOut();
  }

  /** The local path of a file that is named by its address in a bucket, and that is brought in. Other paths stay as they are. */
  async fileAt(path: string, options: Options): Promise<string> {
    if (!isLakeAddress(path)) return path;
    const { text } = parseLakeAddress(path, path);
    const at = text.search(/\/_failures\/[^/]+$/);
    const lake = at < 0 ? text.slice(0, text.lastIndexOf('/')) : text.slice(0, at);
    const { mirror } = await this.#open({ ...options, out: lake });
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

  /** `parts`: the folders of the selected series; none: all. */
  #open(options: Options, parts: readonly string[] = []): Promise<OpenMirror> {
    const { text } = parseLakeAddress(options.out, '--out');
    const opened = this.#opened.get(text) ?? this.#make(text, options, parts);
    this.#opened.set(text, opened);
    return opened;
  }

  async #make(address: string, options: Options, parts: readonly string[]): Promise<OpenMirror> {
    const { clock, surroundings, warn } = this.#caller;
    const stop = new AbortController();
    // Each request in flight adds a listener.
    setMaxListeners(0, stop.signal);
    const { signal } = stop;
    const observer = { ...SILENT_OBSERVER, warn };
    const counts = new RequestCounts();
    const signals = new PublicationSignals(this.#caller, stop);
    const bucket = new LakeBucket({ ...this.#caller, counts, address, options, observer, signal });
    const root = await makeMirrorFolder(options, surroundings);
    const isReader = READERS.has(this.#verb);
    const copies = isReader ? copiesOf(address, options, surroundings) : undefined;
    const mirror = new Mirror({
      bucket,
      root,
      isReadOnly: !this.#isWritten(options),
      comparesVersions: !isReader,
      copies,
      parts,
      clock,
      requests: counts,
      warn,
      onPublication: () => {
        signals.watch();
      },
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
    for (const folder of [...OF_RUNS, '.']) await mirror.publishFolder(join(root, folder));
    // These verbs move files after they have published their manifest, or without a change of it.
    if (['verify', 'repair'].includes(this.#verb))
      for (const folder of await mirror.foldersInRoot()) await mirror.publishFolder(join(root, folder), true);
  }

  #isWritten(options: Options): boolean {
    if (options.dryRun || READERS.has(this.#verb)) return false;
    return this.#verb === 'verify' ? options.fix : this.#verb !== 'universe' || options.fetch;
  }
}

/** The folder of a mirror, for one command. Rejects with `disk` if the folder for temporary files cannot be used. */
async function makeMirrorFolder({ tempDir }: Options, { home }: Surroundings): Promise<string> {
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
function copiesOf(address: string, options: Options, surroundings: Surroundings): FileCopies | undefined {
  try {
    return new FileCopies(join(stateFolder(options, surroundings), 'buckets'), address);
  } catch {
    return undefined;
  }
}

/** Verbs whose given markets and datasets select among the series of a lake. */
const SELECTING: ReadonlySet<Verb> = new Set<Verb>([
  'coverage',
  'verify',
  'repair',
  'report',
  'plot',
  'export',
]);

/** The folders of the selected series, relative to the folder of the exchange; none: all. */
function partsOf(verb: Verb, { options, origins }: Resolved): string[] {
  const given = (name: 'market' | 'dataset'): readonly string[] =>
    origins[name] === 'default' || options[name].includes(ALL) ? [] : options[name];
  if (verb === 'universe' && !options.fetch) return options.market.map((market) => `${market}/klines`);
  if (!SELECTING.has(verb)) return [];
  const datasets = given('dataset').map((dataset) => `/${safeName(dataset)}`);
  return given('market').flatMap((market) =>
    (datasets.length === 0 ? [''] : datasets).map((dataset) => market + dataset),
  );
}

/** Publications that a signal has found under way end within this time. A second signal ends the process. */
const GRACE_MS = 5000;

/** Ends the requests of a bucket some time after a signal: a bucket that does not answer is waited for no longer. */
class PublicationSignals {
  readonly #caller: Pick<Caller, 'clock' | 'onSignal'>;
  readonly #stop: AbortController;
  #release: (() => void) | undefined;
  #timer: Timer | undefined;

  constructor(caller: Pick<Caller, 'clock' | 'onSignal'>, stop: AbortController) {
    this.#caller = caller;
    this.#stop = stop;
  }

  /** Call at the first publication: before, a signal must end a command that does not listen. */
  watch(): void {
    const { clock, onSignal } = this.#caller;
    this.#release ??= onSignal?.((signal) => {
      this.#timer ??= clock.timer(GRACE_MS, () => {
        this.#stop.abort(new CryptodlError('interrupted', `ended by ${signal}`));
      });
    });
  }

  release(): void {
    this.#release?.();
    this.#timer?.cancel();
  }
}
