/** Pieces of the work of a run: what is done, and for which series. */
import type { SourceObject, PartitionPlan, Series } from './task.js';

/**
 * `partition`: from the queue to the outcomes of its objects · `download`: one object, from its request to its rows · `request`: all
 * attempts of a request, also for listings and sidecars · `wait`: a request waits; its name has the reason · `write`: a partition
 * has a writer · `check`, `convert`, `commit`: as in the times of a run.
 */
export type WorkStage =
  'partition' | 'download' | 'request' | 'wait' | 'write' | 'check' | 'convert' | 'commit';

export interface Work {
  readonly stage: WorkStage;
  /** Key of the object, period of the file, URL of the request; of a wait, its reason and URL. */
  readonly name: string;
  readonly series?: Series | undefined;
}

export interface WorkSubject {
  readonly plan: PartitionPlan;
  readonly object?: SourceObject;
  /** The period of the file. Default: that of the partition. */
  readonly label?: string;
}
