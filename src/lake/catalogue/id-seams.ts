/** Compares the ids of the rows of held objects from object to object. */
import { startOfDay, type DayStart } from '../../model/calendar.js';
import type { HeldSpan } from '../held-objects.js';
import { isLongStretch, timesOf, stretchAt, type EmptyStretch } from './empty-stretches.js';

/**
 * Compares the last id of each object with the first id of the next one. `missing`: for each midnight at which ids are missing, the longer stretch
 * beside it, or both if both are long. `decided`: the midnights at which ids tell whether rows
 * are missing, so that silences and long stretches do not count there. Ids that begin anew tell nothing.
 */
export function seamsOf(
  held: readonly HeldSpan[],
  dayStart: DayStart,
): { readonly missing: EmptyStretch[]; readonly decided: ReadonlySet<number> } {
  const missing: EmptyStretch[] = [];
  const decided = new Set<number>();
  for (const [index, { facts, from: day }] of held.entries()) {
    const before = held[index - 1];
    const [last, first] = [before?.facts.ids?.last, facts.ids?.first];
    if (before === undefined || before.facts.open === true || last === undefined || first === undefined)
      continue;
    const ids = first - last - 1;
    // Days without objects between ids that go on had no rows.
    if (ids < 0 || (ids > 0 && before.to !== day)) continue;
    decided.add(before.to).add(day);
    if (ids === 0 || endsWithGap(before, dayStart)) continue;
    const tail = stretchAt(timesOf(day - 1, before.facts), 'end', dayStart);
    const head = stretchAt(timesOf(day, facts), 'begin', dayStart);
    const longer = head.to - head.from > tail.to - tail.from ? head : tail;
    const long = [tail, head].filter(({ from, to }) => isLongStretch(to - from));
    for (const stretch of long.length > 1 ? long : [longer])
      // Not empty, also if the first row is at midnight.
      missing.push({ ...stretch, to: Math.max(stretch.to, stretch.from + 1), lacksIds: true });
  }
  return { missing, decided };
}

/** Whether the last gap of an object reaches its end, so that the missing rows there are known already. */
function endsWithGap({ facts, to }: HeldSpan, dayStart: DayStart): boolean {
  const [, end = ''] = facts.gaps?.at(-1) ?? [];
  return Date.parse(end) >= startOfDay(to, dayStart);
}

/** Whether no id is missing between two objects, and so no row, also of a schedule: its rows tell the time of the row before them. */
export const idsGoOn = ({ facts }: HeldSpan, next: HeldSpan): boolean =>
  facts.ids !== undefined && next.facts.ids?.first === facts.ids.last + 1;
