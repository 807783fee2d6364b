/** The manifest lines of received objects, and the held lines that they replace. */
import { periodText } from '../../model/calendar.js';
import type { HeldObjects } from '../held-objects.js';
import { revisionOf, isFromRest, type DroppedLine, type ObjectLine } from '../../model/manifest-line.js';
import type { Format, PartitionPlan, Revision } from '../../model/task.js';
import type { ReceivedObject } from '../../convert/csv-input.js';

export function droppedLine({ key }: ObjectLine, format: Format, at: string): DroppedLine {
  return { v: 1, kind: 'dropped', key, format, at };
}

/** The manifest line of the same archive object. */
export function heldLine(
  held: HeldObjects,
  { key, period }: ReceivedObject['object'],
): ObjectLine | undefined {
  const line = held.of(period);
  return line?.key === key ? line : undefined;
}

/** The held revision of the same archive object, if its bytes differ. */
export function replacedRevision(
  held: HeldObjects,
  { object, sha256 }: ReceivedObject,
): Revision | undefined {
  const line = heldLine(held, object);
  return line === undefined || line.sha256 === sha256 || isFromRest(line) ? undefined : revisionOf(line);
}

/** The manifest line of a received object, without the facts of its rows and of its file. */
export function objectLine(
  received: ReceivedObject,
  plan: PartitionPlan,
  held: HeldObjects,
  { at, tool }: Pick<ObjectLine, 'at' | 'tool'>,
): Omit<ObjectLine, 'file' | 'fileBytes' | 'fileSha256'> {
  const { object } = received;
  const replaces = replacedRevision(held, received);
  return {
    v: 1,
    kind: 'object',
    key: object.key,
    cadence: object.period.cadence,
    period: periodText(object.period),
    ...(received.etag === undefined ? {} : { etag: received.etag }),
    ...(received.lastModified === undefined ? {} : { lastModified: received.lastModified }),
    bytes: received.zipBytes,
    sha256: received.sha256,
    verified: received.verified,
    ...(received.staleSidecar === undefined ? {} : { staleSidecar: received.staleSidecar }),
    ...(object.rest?.open === true ? { open: true } : {}),
    ...(object.rest?.archiveFailed === undefined ? {} : { archiveFailed: object.rest.archiveFailed }),
    ...(object.rest?.insteadOf === undefined ? {} : { insteadOf: object.rest.insteadOf }),
    settings: plan.settings,
    at,
    tool,
    ...(replaces === undefined ? {} : { replaces }),
  };
}
