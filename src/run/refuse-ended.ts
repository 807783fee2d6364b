/** Asking for what the venue has ended gets an answer instead of a row of absences. */
import { dayText } from '../calendar.js';
import { usage } from '../errors.js';
import type { PlanTotals } from '../task.js';
import { endedText, endOfDataset } from '../venue/ended.js';
import { findDataset } from '../venue/venue.js';
import type { Venue } from '../venue/venue.js';
import { MARKETS } from '../venue/words.js';
import type { ChosenDataset } from './choose-datasets.js';

type Ended = Pick<ChosenDataset, 'market' | 'spec'>;

/** Days before an end that a suggestion shows. */
const SHOWN_DAYS = 7;

/** Throws a usage error that says since when, and where there is some. */
export function refuseEnded(venue: Venue, { market, spec }: Ended): never {
  const text = endedText(venue, market, spec.name) ?? `${market} ${spec.name} has ended`;
  const end = endOfDataset(spec);
  if (end === undefined || spec.removed) {
    const other = MARKETS.find(
      (candidate) => candidate !== market && findDataset(venue, candidate, spec.name) !== undefined,
    );
    if (other === undefined) throw usage(text);
    throw usage(text, undefined, {
      command: ['list', 'symbols', '--market', other, '--dataset', spec.name],
    });
  }
  throw usage(text, undefined, {
    flags: { days: null, months: null, from: dayText(end - SHOWN_DAYS), to: dayText(end - 1) },
  });
}

/** Throws when a plan has nothing to do but to say that datasets have ended. */
export function refuseAllEnded(venue: Venue, ended: readonly Ended[], totals: PlanTotals): void {
  const [first] = ended;
  if (first === undefined || totals.absent === 0 || totals.fetch + totals.skip > 0) return;
  if (totals.absentBy['dataset-ended'] === totals.absent) refuseEnded(venue, first);
}

/** A line per dataset that ends before the range does. */
export function endedNotes(venue: Venue, ended: readonly Ended[], to: number): string[] {
  const texts = ended
    .filter(({ spec }) => (endOfDataset(spec) ?? to) < to)
    .flatMap(({ market, spec }) => endedText(venue, market, spec.name) ?? []);
  return [...new Set(texts)].map((text) => `ended      ${text}`);
}
