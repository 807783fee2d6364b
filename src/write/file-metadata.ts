/** The metadata in the footer of a Parquet file. It has no time stamps, so that the same rows produce the same file. */
import type { FileMetadata } from '../convert/conversion.js';
import type { Series, Settings } from '../model/task.js';
import { describeColumns } from '../source/describe.js';
import type { DatasetSpec, Venue } from '../source/venue.js';

export interface DescribedFile {
  readonly venue: Pick<Venue, 'name' | 'terms'>;
  /** The version of the program. */
  readonly tool: string;
  readonly series: Series;
  readonly spec: DatasetSpec;
  readonly settings: Settings;
  /** `2024-01` */
  readonly label: string;
}

/** Where the rows of a file come from. */
export interface RowOrigin {
  /** The fields of the entry that tell it. */
  readonly entry: Readonly<Record<string, unknown>>;
  readonly isFromArchive: boolean;
  readonly isFromRest: boolean;
}

/** The series, the columns and the origin of the rows as JSON, with the terms of their sources. */
export function fileMetadata(
  { venue, tool, series, spec, settings, label }: DescribedFile,
  { entry, isFromArchive, isFromRest }: RowOrigin,
): FileMetadata {
  const cryptodl = JSON.stringify({
    tool: `cryptodl ${tool}`,
    venue: venue.name,
    ...series,
    settings,
    period: label,
    timeZone: 'UTC',
    columns: Object.fromEntries(
      describeColumns(spec).map(({ name, unit, doc }) => [name, unit === '' ? doc : `${doc}; ${unit}`]),
    ),
    ...entry,
  });
  const { terms } = venue;
  if (terms === undefined) return { cryptodl };
  const sources = [...(isFromArchive ? [terms.archive] : []), ...(isFromRest ? [terms.rest] : [])];
  return {
    cryptodl,
    license: sources.map(({ license }) => license).join('; '),
    attribution: sources.map(({ attribution }) => attribution).join('; '),
  };
}
