/** What a run announces before its work: its selection, its plan and the terms of the data. */
import { noticePath, writeNotice } from '../lake/notice.js';
import { errnoOf } from '../model/errors.js';
import type { Announcement } from '../model/observer.js';
import type { Plan } from '../plan/plan.js';
import { shownPath } from '../text/printable.js';
import { countText } from '../model/units.js';
import { dayText } from '../model/calendar.js';
import { requestNotes, type RunSelection } from '../plan/select/selection.js';
import { limitedBuckets } from '../http/throttle/exchange-hosts.js';
import type { RunSession } from './session/session.js';

export function announcement(
  session: RunSession,
  { what, requests, range, idle, notes, order }: RunSelection,
  { totals }: Plan,
): Announcement {
  const formats = totals.formats.length === 0 ? session.options.format : totals.formats.join(' and ');
  const ofRest = requestNotes(limitedBuckets(session.exchange, session.options), totals.restWeights);
  const older =
    totals.older === 0 || order?.firstDay === undefined
      ? []
      : [
          `order      ${countText(totals.older, 'object')} from before ${dayText(order.firstDay)} that an earlier run asked for and the lake lacks; --exact leaves them out`,
        ];
  const symbols = [...new Set(requests.map(({ series }) => series.symbol))];
  const folder = shownPath(session.paths.root);
  return { what, symbols, range, idle, notes: [...notes, ...older, ...ofRest], formats, folder, totals };
}

/** Writes the notice of the terms into a lake without one, and then resolves with the terms. A failed write is only a warning. */
export async function noteTerms({ exchange, paths, observer }: RunSession): Promise<Announcement['terms']> {
  const { terms } = exchange;
  if (terms === undefined) return undefined;
  const notice = shownPath(noticePath(paths));
  try {
    if (!(await writeNotice(paths, terms.notice))) return undefined;
  } catch (error) {
    observer.warn(`the terms of the data cannot be written to ${notice} (${errnoOf(error)})`);
    return undefined;
  }
  return { summary: terms.summary, notice };
}
