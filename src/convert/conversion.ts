import type { ObjectLine } from '../lake/manifest-line.js';
import type { Series, Settings } from '../model/task.js';
import type { DatasetSpec } from '../source/venue.js';
import type { ReceivedObject } from './csv-input.js';

/** What goes into one file, and where it is made. */
export interface Conversion {
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  readonly series: Series;
  /** In period order. */
  readonly received: readonly ReceivedObject[];
  /** An existing file that stays in, and the objects that are in it, in period order. */
  readonly kept?: {
    readonly file: string;
    readonly lines: readonly ObjectLine[];
    /** Objects whose rows are in the file and do not stay: their times lie apart from those of the others. */
    readonly replaced: readonly ObjectLine[];
  };
  /** Rows of REST, in that file, that the archive's take the place of: to be compared with them. */
  readonly overlap?: { readonly file: string; readonly replaced: readonly ObjectLine[] };
  /** Objects of the archive that have changed there, in that file: rows that are gone are counted. */
  readonly revised?: { readonly file: string; readonly lines: readonly ObjectLine[] };
  /** Days in that file that a monthly object takes the place of: it must have all of their rows, and more. */
  readonly days?: { readonly file: string; readonly replaced: readonly ObjectLine[] };
  /** Scratch of the input; other names start with it. */
  readonly csvPath: string;
  readonly targetPath: string;
  /** More text than this is not parsed into memory but straight into a file. */
  readonly memoryCsvBytes: number;
  /** JSON for the file's key-value metadata. */
  readonly provenance: (written: readonly ReceivedObject[]) => string;
}
