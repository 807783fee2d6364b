/** Where the rows of a file come from, for the file itself. */
import type { ObjectLine } from '../lake/manifest-line.js';
import type { PartitionPlan } from '../task.js';
import { describeColumns } from '../venue/describe.js';
import type { DatasetSpec } from '../venue/venue.js';
import type { ReceivedObject } from './csv-input.js';
import type { WriterContext } from './writer.js';

/** No time stamps: the same objects give the same file. */
export function provenance(
  context: Pick<WriterContext, 'tool' | 'venue'>,
  plan: PartitionPlan,
  spec: DatasetSpec,
  label: string,
  kept: readonly ObjectLine[],
  written: readonly ReceivedObject[],
): string {
  const objects = [...kept, ...written.map(({ object, sha256 }) => ({ key: object.key, sha256 }))];
  return JSON.stringify({
    tool: `cryptodl ${context.tool}`,
    venue: context.venue.name,
    ...plan.series,
    settings: plan.settings,
    period: label,
    timeZone: 'UTC',
    columns: Object.fromEntries(
      describeColumns(spec).map(({ name, unit, doc }) => [name, unit === '' ? doc : `${doc}; ${unit}`]),
    ),
    objects: objects.map(({ key, sha256 }) => ({ key, sha256 })).sort((a, b) => (a.key < b.key ? -1 : 1)),
  });
}
