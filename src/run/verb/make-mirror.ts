/** Makes the mirror of a lake in a bucket, for one command. */
import { setMaxListeners } from 'node:events';
import { rm } from 'node:fs/promises';
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
import { bucketOptions, copiesOf, graceAfterSignals, makeMirrorFolder } from './mirror-parts.js';
import type { Caller, MirrorFlag } from './mirror-parts.js';

export interface OpenMirror {
  readonly bucket: LakeBucket;
  readonly mirror: Mirror;
  readonly close: () => Promise<void>;
}

export interface MirroredLake {
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
export async function makeMirror(
  verb: VerbSpec,
  caller: Caller,
  { address, options, parts }: MirroredLake,
): Promise<OpenMirror> {
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
