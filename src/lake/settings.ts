/** The settings of a series: comparison of requested settings with those of its files. */
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Format, Series, Settings } from '../model/task.js';
import type { ObjectLine } from './manifest-line.js';

/** The settings that change the files of a format. */
const RELEVANT: Readonly<Record<Format, readonly (keyof Settings)[]>> = {
  parquet: ['partition', 'cadence', 'numbers', 'asPublished'],
  csv: ['partition', 'cadence', 'timestamps', 'asPublished'],
  zip: ['cadence'],
};

export interface Difference {
  readonly name: string;
  readonly held: string;
  readonly requested: string;
}

/** The differences between the requested settings and those of the first line that differs; empty if no line differs. */
export function differingSettings(lines: readonly ObjectLine[], requested: Settings): Difference[] {
  const names = RELEVANT[requested.format];
  const other = lines.find((line) => names.some((name) => line.settings[name] !== requested[name]))?.settings;
  if (other === undefined) return [];
  return names
    .filter((name) => other[name] !== requested[name])
    .map((name) => ({ name: flagName(name), held: String(other[name]), requested: String(requested[name]) }));
}

/** Throws a usage error with the folder, the differences and the corrected flags. */
export function throwSettingsError(
  series: Series,
  folder: string,
  differences: readonly Difference[],
): never {
  const texts = differences.map(
    ({ name, held, requested }) => `${name} ${held}, but --${name} is ${requested}`,
  );
  throw usage(
    `${seriesName(series)} in ${folder} is held with ${texts.join(' and ')}`,
    `${differences.map(({ name, held }) => (name === 'as-published' ? (held === 'true' ? '--as-published' : 'leave --as-published out') : `--${name} ${held}`)).join(' ')}, another --out, or --force to rewrite the series`,
    {
      flags: Object.fromEntries(
        differences.map(({ name, held }) => [
          name,
          name === 'as-published' && held === 'false' ? null : held,
        ]),
      ),
    },
  );
}

function flagName(name: keyof Settings): string {
  return name === 'asPublished' ? 'as-published' : name;
}
