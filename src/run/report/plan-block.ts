/** The first lines of a run: the selection, so that a user sees a misunderstanding, and the plan in numbers. */
import type { Announcement } from '../../model/observer.js';
import { bytesText, countText } from '../../model/units.js';
import { row, some } from './closing-block.js';

/** The plan names at most this number of symbols. */
const MOST_NAMES = 3;

export function planBlock(announced: Announcement): string[] {
  const { what, symbols, range, idle = 'no series to continue', notes, totals, terms } = announced;
  const absent = Object.entries(totals.absentBy).flatMap(([reason, number]) => some(number, reason));
  const ofArchive = totals.fetch - totals.fetchRest;
  const size = [
    ...(ofArchive === 0 ? [] : [`${countText(ofArchive, 'object')}, ${bytesText(totals.fetchBytes)}`]),
    ...(totals.fetchRest === 0 ? [] : [`${countText(totals.fetchRest, 'period')} from REST`]),
  ].join(' and ');
  const fetch = `${size}, into ${countText(totals.partitions, 'partition')} of ${announced.formats}`;
  const parts = Object.entries(totals.fetchBy)
    .filter(([, { objects }]) => objects > 0)
    .flatMap(([name, of]) => row('', `${name}: ${countText(of.objects, 'object')}, ${bytesText(of.bytes)}`));
  const names = symbols.length > MOST_NAMES ? countText(totals.series, 'series') : symbols.join(', ');
  return [
    `${what} in ${announced.folder}: ${totals.series === 0 ? idle : `${names}, ${range}`}`,
    ...notes.map((note) => `  ${note}`),
    ...row('to fetch', totals.fetch === 0 ? 'nothing' : fetch),
    // One line per dataset, if there are several.
    ...(parts.length < 2 ? [] : parts),
    ...(totals.wider > 0
      ? row('whole', `${countText(totals.wider, 'month')}: the archive lacks daily objects of them`)
      : []),
    ...(totals.skip > 0 ? row('held', `${countText(totals.skip, 'object')}, unchanged`) : []),
    ...(totals.absent > 0 ? row('absent', absent.join(', ')) : []),
    ...row('terms', terms && `${terms.summary}: ${terms.notice}`),
  ];
}
