/** A store of zips between two runs of one job: the first fetches them, the second converts them. */
import type { ReceivedObject } from '../../convert/csv-input.js';
import type { ArchiveObject } from '../../model/task.js';

/** An object without its rows. */
export type ReceivedZip = Omit<ReceivedObject, 'object' | 'csv' | 'name'>;

export interface ZipStore {
  /** Whether the run ends with the zips in the store: it converts and writes nothing. */
  readonly isLast: boolean;
  /** A zip from the store, or from the archive by `request`. Undefined: the archive has none. `path`: for a file that this function may write. */
  zipOf(
    object: ArchiveObject,
    path: string,
    request: () => Promise<ReceivedZip | undefined>,
  ): Promise<ReceivedZip | undefined>;
}
