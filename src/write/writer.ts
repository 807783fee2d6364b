/** What the two kinds of writer have in common. */
import type { Clock } from '../model/clock.js';
import type { CryptodlError } from '../model/errors.js';
import type { Body } from '../http/fetch.js';
import type { LakePaths } from '../lake/layout.js';
import type { Lock } from '../lake/lock.js';
import type { Manifests } from '../lake/manifests.js';
import type { Serialize } from '../queue/in-order.js';
import type { PartitionPlan, Revision } from '../model/task.js';
import type { Source } from '../source/source.js';
import type { ObjectFacts } from '../convert/convert.js';
import type { ShorterRevision } from './shorter-revisions.js';
import type { ReceivedObject } from '../convert/csv-input.js';
import type { Engine } from '../convert/duckdb.js';
import type { Overlap } from '../convert/overlap.js';

/** Keys of a plan that were not received: the archive does not have them, or the error. */
export type Missing = ReadonlyMap<string, 'absent' | CryptodlError>;

export interface WriterContext {
  readonly venue: Source;
  readonly paths: LakePaths;
  readonly manifests: Manifests;
  /** Spool of the run. */
  readonly tempFolder: string;
  readonly engine: Engine;
  readonly serialize: Serialize;
  /** Asked before every commit. */
  readonly lock?: Pick<Lock, 'confirm'>;
  readonly clock: Clock;
  /** Measures how long a stage takes. */
  readonly timed: <T>(stage: 'check' | 'convert' | 'commit', act: () => Promise<T>) => Promise<T>;
  readonly tool: string;
  /** Revisions are taken also when they lack rows that are held. */
  readonly acceptsShorter: boolean;
  /** Rows of a zip of the archive, or why it cannot be read. */
  readonly countRows: (zip: Body, key: string) => Promise<number | CryptodlError>;
}

export interface WrittenObject extends Partial<ObjectFacts> {
  /** Rows that the period must have, where that is known. */
  readonly expectedRows?: number;
  /** What was held of the object before, when it has changed upstream. */
  readonly replaces?: Revision;
}

export interface WriteResult {
  readonly written: ReadonlyMap<string, WrittenObject>;
  readonly failed: ReadonlyMap<string, CryptodlError>;
  /** Absent keys whose rows stay in the file. */
  readonly stillHeld?: ReadonlySet<string>;
  readonly files: number;
  readonly bytes: number;
  /** Revisions that were not taken, because they lack rows that are held. */
  readonly shorter?: ReadonlyMap<string, ShorterRevision>;
  /** Damaged files that were put aside. */
  readonly quarantined?: number;
  readonly duplicatesAcross: number;
  /** Of what came from REST and what the archive has published since. */
  readonly overlaps: readonly Overlap[];
}

export interface PartitionWriter {
  /** Called before anything is fetched; may add objects that must be fetched as well. */
  prepare(plan: PartitionPlan): Promise<PartitionPlan>;
  /** Ends what was begun for all of them; nothing is written after it. */
  close(): Promise<void>;
  /** Rejects only on disk errors and bugs. */
  write(plan: PartitionPlan, received: readonly ReceivedObject[], missing: Missing): Promise<WriteResult>;
}
