import type { ObjectLine } from '../lake/manifest.js';
import type { Series, Settings } from '../task.js';
import type { DatasetSpec } from '../venue/venue.js';
import type { ReceivedObject } from './csv-input.js';

/** What goes into one file, and where it is made. */
export interface Conversion {
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  readonly series: Series;
  /** In period order. */
  readonly received: readonly ReceivedObject[];
  /** An existing file that stays in, and the objects that are in it, in period order. */
  readonly kept?: { readonly file: string; readonly lines: readonly ObjectLine[] };
  /** Scratch of the input; other names start with it. */
  readonly csvPath: string;
  readonly targetPath: string;
  /** More text than this is not parsed into memory but straight into a file. */
  readonly memoryCsvBytes: number;
  /** JSON for the file's key-value metadata. */
  readonly provenance: (written: readonly ReceivedObject[]) => string;
}
