import type { Session } from './session.js';
import type { Settings } from '../task.js';
import { cadencesOf } from '../venue/keys.js';
import { defaultPartition } from '../venue/venue.js';
import type { DatasetSpec } from '../venue/venue.js';

/** A dataset with one cadence has no choice to remember. */
export function settingsOf(session: Session, spec: DatasetSpec, interval: string | undefined): Settings {
  const { options } = session;
  const exist = cadencesOf(spec, interval);
  return {
    format: options.format,
    partition: options.partition ?? defaultPartition(spec, interval),
    cadence: exist.length === 1 ? (exist[0] ?? 'auto') : options.cadence,
    numbers: options.numbers,
    timestamps: options.timestamps,
    asPublished: options['as-published'] === true,
  };
}
