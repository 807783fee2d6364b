import type { Session } from '../session.js';
import type { Cadence, Settings } from '../task.js';
import type { DatasetSpec } from '../venue/venue.js';

/** A dataset with one cadence has no choice to remember. */
export function settingsOf(session: Session, spec: DatasetSpec, exist: readonly Cadence[]): Settings {
  const { options } = session;
  return {
    format: options.format,
    partition: options.partition ?? spec.partition,
    cadence: exist.length === 1 ? (exist[0] ?? 'auto') : options.cadence,
    numbers: options.numbers,
    timestamps: options.timestamps,
    asPublished: options['as-published'] === true,
  };
}
