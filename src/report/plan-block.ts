/** The first lines of a run: the plan in numbers. */
import type { Announcement } from '../model/observer.js';
import { bytesText, countText, numberText } from '../model/units.js';

export function planBlock({
  what,
  range,
  idle = 'nothing goes on',
  notes,
  destination,
  totals,
}: Announcement): string[] {
  const absent = Object.entries(totals.absentBy).map(([reason, number]) => `${numberText(number)} ${reason}`);
  const ofArchive = totals.fetch - totals.fetchRest;
  const size = [
    ...(ofArchive === 0 ? [] : [`${countText(ofArchive, 'object')}, ${bytesText(totals.fetchBytes)}`]),
    ...(totals.fetchRest === 0 ? [] : [`${countText(totals.fetchRest, 'period')} from REST`]),
  ].join(' and ');
  const fetch =
    totals.fetch === 0
      ? 'nothing'
      : `${size}, into ${countText(totals.partitions, 'partition')} of ${destination}`;
  return [
    `${what}: ${totals.series === 0 ? idle : `${numberText(totals.series)} series, ${range}`}`,
    ...notes.map((note) => `  ${note}`),
    `  to fetch   ${fetch}`,
    ...fetchLines(totals),
    ...(totals.wider > 0
      ? [
          `  whole      ${countText(totals.wider, 'month')} of which a part was asked for: the archive has no days of ${totals.wider === 1 ? 'it' : 'them'}`,
        ]
      : []),
    ...(totals.skip > 0 ? [`  held       ${countText(totals.skip, 'object')}, unchanged`] : []),
    ...(totals.absent > 0 ? [`  absent     ${absent.join(', ')}`] : []),
  ];
}

/** One line per dataset, if there are several. */
function fetchLines({ fetchBy }: Announcement['totals']): string[] {
  const parts = Object.entries(fetchBy).filter(([, { objects }]) => objects > 0);
  if (parts.length < 2) return [];
  return parts.map(
    ([name, { objects, bytes }]) =>
      `             ${name}: ${countText(objects, 'object')}, ${bytesText(bytes)}`,
  );
}
