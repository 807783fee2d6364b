/** The held days of a series that count as cut. */
import type { HeldObjects, HeldSpan } from '../held-objects.js';
import type { Absences } from '../absences.js';
import { UTC } from '../../model/calendar.js';
import type { DatasetSpec } from '../../exchange/exchange-spec.js';
import { reasons } from './absent-days.js';
import { cutStretches } from './cut-days.js';
import type { EmptyStretch } from './empty-stretches.js';
import { hasEnded, isBeforeStart, type Part } from './gap-edges.js';
import { append, type DayRange } from './spans.js';
import { ownDays, factsOf, type FactTerms } from './series-facts.js';

export function daysOf(objects: readonly DayRange[]): number[] {
  const days: number[] = [];
  for (const { from, to } of objects) append(days, from, to);
  return days;
}

function mayBeCut(held: readonly HeldSpan[], rate: DatasetSpec['rate']): boolean {
  return rate !== undefined || held.some(({ facts }) => facts.ids !== undefined);
}

/** The stretches without rows of the cut days in the range; empty for a series with neither a rate nor ids. */
export function cutsOf(
  held: readonly HeldSpan[],
  { from, to, rate, heldDays, known, dayStartSeconds }: Omit<Part, 'rowSeconds' | 'halts' | 'bars'>,
): EmptyStretch[] {
  if (!mayBeCut(held, rate)) return [];
  const reasonOf = reasons(heldDays, known);
  const isIdle = (day: number): boolean => {
    const { reason } = reasonOf(day);
    return hasEnded(reason) || isBeforeStart(reason) || reason === 'not-traded';
  };
  const cuts = cutStretches(held, isIdle, { dayStartMs: dayStartSeconds * 1000 }, rate);
  return cuts.filter(({ day }) => day >= from && day < to);
}

/** The stretches without rows for which held days count as cut, for runs and `repair`. */
export function heldCuts(
  { held, absences }: { readonly held: HeldObjects; readonly absences: Absences },
  terms: Pick<FactTerms, 'spec' | 'today'>,
): readonly EmptyStretch[] {
  const objects = held.spans();
  const rate = terms.spec?.rate;
  // Most series have neither a rate nor ids, and a run calls this for each series.
  if (!mayBeCut(objects, rate)) return [];
  const heldDays = daysOf(objects);
  const known = { absences, ...factsOf(terms, objects) };
  const { from, to } = ownDays(heldDays, absences, []);
  const dayStartSeconds = (terms.spec ?? UTC).dayStartMs / 1000;
  return cutsOf(objects, { from, to: Math.min(to, terms.today), rate, dayStartSeconds, heldDays, known });
}
