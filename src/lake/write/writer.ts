/** The interface of the partition writers, and their context. */
import type { Clock } from '../../model/clock.js';
import { CryptodlError } from '../../model/errors.js';
import type { Body } from '../../model/fetch.js';
import type { LakePaths } from '../layout.js';
import type { Lock } from '../lock.js';
import type { Manifests } from '../manifests.js';
import type { Serialize } from '../../model/in-order.js';
import type { RowFacts } from '../../model/outcome.js';
import type { PartitionPlan, Revision } from '../../model/task.js';
import type { WorkSubject } from '../../model/work.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { Engine } from '../../convert/duckdb.js';
import type { Overlap } from '../../convert/conversion.js';

/** Planned objects that were not received, by key: `absent` if the archive or REST does not have them, else the error. */
export type Missing = ReadonlyMap<string, 'absent' | CryptodlError>;

export interface WriterContext {
  readonly exchange: Exchange;
  readonly paths: LakePaths;
  readonly manifests: Manifests;
  readonly tempFolder: string;
  readonly engine: Engine;
  readonly serialize: Serialize;
  /** Confirmed before every commit. */
  readonly lock?: Pick<Lock, 'confirm'> | undefined;
  readonly clock: Clock;
  /** Runs `act`, adds its duration to the stage, and tells the followers of the run. */
  readonly timed: <T>(
    stage: 'check' | 'convert' | 'commit',
    subject: WorkSubject,
    act: () => Promise<T>,
  ) => Promise<T>;
  readonly tool: string;
  readonly acceptsShorter: boolean;
  /** The number of rows in a zip of the archive, or the error for an unreadable zip. */
  readonly countRows: (zip: Body, key: string) => Promise<number | CryptodlError>;
}

export interface WrittenObject extends RowFacts {
  /** Rows that the period must have, if that is known. */
  readonly expectedRows?: number;
  /** The previous revision, if the object has changed upstream. */
  readonly replaces?: Revision;
}

/** A revision that lacks held rows, and is rejected. */
export interface ShorterRevision {
  readonly received: ReceivedObject;
  /** Key of the held line for the period: an archive object, or rows of REST. */
  readonly heldKey: string;
  /** Rows of the new revision. */
  readonly rows: number;
  /** Held rows, which stay. */
  readonly keptRows: number;
  /** Held rows that the new revision lacks; 0 if only row counts were compared. */
  readonly lackedRows: number;
}

export interface WriteResult {
  readonly written: ReadonlyMap<string, WrittenObject>;
  readonly failed: ReadonlyMap<string, CryptodlError>;
  /** Keys of objects that the archive or REST no longer has, but whose rows stay in the file. */
  readonly stillHeld?: ReadonlySet<string>;
  readonly files: number;
  readonly bytes: number;
  /** Rejected revisions that lack held rows, by key. */
  readonly shorter?: ReadonlyMap<string, ShorterRevision>;
  /** Number of existing files that were moved to the quarantine, because the new files may lack some of their rows. */
  readonly quarantined?: number;
  readonly duplicatesAcross: number;
  /** Comparisons of rows from REST with rows of the archive for the same periods. */
  readonly overlaps: readonly Overlap[];
}

export interface PartitionWriter {
  /** Called before any fetch; may add objects to fetch. */
  prepare(plan: PartitionPlan): Promise<PartitionPlan>;
  /** Commits the received objects. Rejects on disk errors and bugs, and with `locked` when another run has taken over the lake. */
  write(plan: PartitionPlan, received: readonly ReceivedObject[], missing: Missing): Promise<WriteResult>;
}

export function emptyResult(failed: ReadonlyMap<string, CryptodlError>): WriteResult {
  return { written: new Map(), failed, files: 0, bytes: 0, duplicatesAcross: 0, overlaps: [] };
}

export const failAll = (received: readonly ReceivedObject[], error: CryptodlError): WriteResult =>
  emptyResult(new Map(received.map(({ object }) => [object.key, error])));

/** The error for an object whose only file is damaged or missing. `quarantinePath`: the damaged file; undefined for a missing one. */
export function lostError(file: string, key: string, quarantinePath: string | undefined): CryptodlError {
  const state = quarantinePath === undefined ? `${file} was missing` : `${file} was damaged`;
  return new CryptodlError(
    'object-withdrawn',
    `${state}, and ${key} cannot be fetched again: its rows are lost`,
    quarantinePath === undefined ? {} : { hint: `the damaged file is kept as ${quarantinePath}` },
  );
}
