/** The input and the result of a conversion. */
import type { CryptodlError } from '../model/errors.js';
import type { ObjectLine } from '../model/manifest-line.js';
import type { RowFacts } from '../model/outcome.js';
import type { Series, Settings } from '../model/task.js';
import type { DatasetSpec } from '../exchange/exchange-spec.js';
import type { ReceivedObject } from './csv-input.js';
import type { DuckDb } from './duckdb.js';

/** The key-value metadata in the footer of a Parquet file. */
export interface FileMetadata {
  /** JSON: the series, the settings and the objects of the file. */
  readonly cryptodl: string;
  readonly license?: string;
  readonly attribution?: string;
}

interface ExistingRows {
  readonly file: string;
  /** Those whose rows stay, in period order. */
  readonly kept: readonly ObjectLine[];
  /** Those whose rows are removed from the file. Their time ranges overlap no object that stays. */
  readonly replaced: readonly ObjectLine[];
  /** Replaced ones whose periods were received from the other source (archive or REST). The rows of both are compared. */
  readonly compared: readonly ObjectLine[];
  /** Replaced ones of the archive that have changed upstream. Held rows that the new revision lacks are counted. */
  readonly revised: readonly ObjectLine[];
  /** Days that a monthly object replaces. It must have all of their rows, and more. */
  readonly days: readonly ObjectLine[];
}

/** About six months of 1m bars: those of um BTCUSDT on 2023-04-15 have 162,020 bytes. */
export const MEMORY_CSV_BYTES = 32 * 1024 * 1024;

export interface Conversion {
  readonly duckdb: DuckDb;
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  readonly series: Series;
  /** In period order. */
  readonly received: readonly ReceivedObject[];
  /** The existing file, if it has rows that stay or that are compared with the received ones. */
  readonly existing?: ExistingRows;
  /** Path of a temporary file. The paths of other temporary files begin with it or with `targetPath`. */
  readonly csvPath: string;
  readonly targetPath: string;
  /** More CSV than this is parsed into a file instead of memory. */
  readonly memoryCsvBytes: number;
  readonly metadata: (written: readonly ReceivedObject[]) => FileMetadata;
  /** Gets the errors of invalid objects, by key. */
  readonly failed: Map<string, CryptodlError>;
}

/** What the SQL of a conversion depends on. */
export type SqlContext = Pick<Conversion, 'spec' | 'settings' | 'series' | 'targetPath' | 'existing'>;

export interface ObjectFacts extends RowFacts {
  readonly rows: number;
  readonly first: string;
  readonly last: string;
  readonly duplicates: number;
  /** The rows that the object must have by the schedule of its own rows. */
  readonly expectedRows?: number;
}

export interface Overlap {
  /** Rows with the same id or time in both sources. */
  readonly compared: number;
  readonly differing: number;
  readonly onlyRest: number;
  readonly onlyArchive: number;
  /** How much later (negative: earlier) the archive labels its rows than REST, if most rows differ at equal times but agree with this shift. */
  readonly labelsShiftMs?: number;
}

export interface ConversionResult {
  readonly written: ReadonlyMap<string, ObjectFacts>;
  readonly failed: ReadonlyMap<string, CryptodlError>;
  /** Rows of the whole file. */
  readonly rows: number;
  /** Exact duplicates across objects; they are kept. */
  readonly duplicatesAcross: number;
  readonly overlap?: Overlap;
  /** The number of held rows that a new revision of an object lacks, by the key of the object. */
  readonly lacked: ReadonlyMap<string, number>;
}
