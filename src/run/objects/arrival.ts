/** How a planned object arrived, or how else its download ended. */
import type { ReceivedObject } from '../../convert/csv-input.js';
import { CryptodlError } from '../../model/errors.js';
import type { Task } from '../../model/task.js';
import type { Missing, WriteResult } from '../../lake/write/writer.js';

/** `instead`: the object is absent, or the held one stays, because REST does not have more rows, or refused the request. */
export type Arrived =
  { readonly received: ReceivedObject } | { readonly instead: Exclude<Task['action'], { kind: 'fetch' }> };

export interface Arrival {
  readonly task: Task;
  readonly end: Arrived | { readonly error: CryptodlError };
}

/** The error of the round before. */
export function failureOf({ failure }: Task): CryptodlError {
  if (failure === undefined) return new CryptodlError('bug', 'a task was deferred without a reason');
  return CryptodlError.of(failure);
}

/** A failed substitute ends as the original object, with its first error and the error of the substitute. */
export function withoutSubstitute(arrival: Arrival): Arrival {
  const { task, end } = arrival;
  const { series, action, standsFor } = task;
  if (standsFor === undefined || 'received' in end) return arrival;
  const first = failureOf(task);
  const why = 'error' in end ? `: ${end.error.message}` : '';
  const error = first.with({ message: `${first.message}; REST does not have it either${why}` });
  return { task: { series, object: standsFor, action }, end: { error } };
}

/** Of the objects that were not received, those that the writer must know. */
export function missingOf(arrivals: readonly Arrival[]): Missing {
  const missing = new Map<string, CryptodlError | 'absent'>();
  for (const { task, end } of arrivals)
    if ('error' in end) missing.set(task.object.key, end.error);
    else if ('instead' in end && end.instead.kind === 'absent') missing.set(task.object.key, 'absent');
  return missing;
}

/** The ends after a write: absent objects whose held rows stay are skipped, and refused ones, which come last, have the error of the writer. */
export function afterWrite(
  arrivals: readonly Arrival[],
  { failed, stillHeld }: Pick<WriteResult, 'failed' | 'stillHeld'>,
): Arrival[] {
  const kept: Arrival[] = [];
  const refused: Arrival[] = [];
  for (const arrival of arrivals) {
    const { task } = arrival;
    const error = failed.get(task.object.key);
    if (error !== undefined) refused.push({ task, end: { error } });
    else if (stillHeld?.has(task.object.key) !== true) kept.push(arrival);
    else kept.push({ task, end: { instead: { kind: 'skip', isWithdrawn: true } } });
  }
  return [...kept, ...refused];
}
