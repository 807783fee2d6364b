/** The metadata in the footer of a Parquet file. It has no time stamps, so that the same rows produce the same file. */
import type { FileMetadata } from '../../convert/conversion.js';
import type { Series, Settings } from '../../model/task.js';
import type { DatasetSpec, ExchangeSpec } from '../../exchange/exchange-spec.js';
import { describeColumns } from '../../exchange/describe.js';
import type { ReceivedObject } from '../../convert/csv-input.js';
import { isFromRest, type ObjectLine } from '../../model/manifest-line.js';

export interface DescribedFile {
  readonly exchange: Pick<ExchangeSpec, 'name' | 'terms'>;
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
  readonly entry: Readonly<Record<string, unknown>>;
  readonly hasArchive: boolean;
  readonly hasRest: boolean;
}

/** The series, the columns and the origin of the rows as JSON, with the terms of their sources. */
export function fileMetadata(
  { exchange, tool, series, spec, settings, label }: DescribedFile,
  { entry, hasArchive, hasRest }: RowOrigin,
): FileMetadata {
  const cryptodl = JSON.stringify({
    tool: `cryptodl ${tool}`,
    venue: exchange.name,
    ...series,
    settings,
    period: label,
    timeZone: 'UTC',
    columns: Object.fromEntries(
      describeColumns(spec).map(({ name, unit, doc }) => [name, unit === '' ? doc : `${doc}; ${unit}`]),
    ),
    ...entry,
  });
  const { terms } = exchange;
  if (terms === undefined) return { cryptodl };
  const sources = [...(hasArchive ? [terms.archive] : []), ...(hasRest ? [terms.rest] : [])];
  return {
    cryptodl,
    license: sources.map(({ license }) => license).join('; '),
    attribution: sources.map(({ attribution }) => attribution).join('; '),
  };
}

/** The metadata of a file with the rows of held lines and of received objects. */
export function metadataOfObjects(
  file: DescribedFile,
  kept: readonly ObjectLine[],
  written: readonly ReceivedObject[],
): FileMetadata {
  const received = written.map(({ object: { key }, ...facts }) => ({ ...facts, key }));
  // The facts that the manifest lines have too.
  const objects = [...kept, ...received].map(({ key, sha256, bytes, verified, etag, lastModified }) => {
    return { key, sha256, bytes, verified, etag, lastModified };
  });
  const isRest = objects.map(isFromRest);
  return fileMetadata(file, {
    entry: { objects: objects.sort((a, b) => (a.key < b.key ? -1 : 1)) },
    hasArchive: isRest.includes(false),
    hasRest: isRest.includes(true),
  });
}
