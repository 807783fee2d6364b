/** The settings of a series: those that a run takes from its files, and their comparison with requested ones. */
import { usage } from '../model/errors.js';
import { FORMATS, seriesName, type Format, type Series, type Settings } from '../model/task.js';
import type { HeldObjects } from './held-objects.js';

/** The settings that change the files of a format. */
const RELEVANT: Readonly<Record<Format, readonly (keyof Settings)[]>> = {
  parquet: ['partition', 'cadence', 'numbers', 'timestamps', 'asPublished'],
  csv: ['partition', 'cadence', 'timestamps', 'asPublished'],
  zip: ['cadence'],
};

/**
 * The requested settings, where those that are not `given` are replaced by those of the held series. A held format is taken only if the
 * lake has no object of the requested one, and if the given settings change files of the held one.
 */
export function continuedSettings(
  requested: Settings,
  given: ReadonlySet<keyof Settings>,
  held: Readonly<Record<Format, HeldObjects>>,
): Settings {
  const fits = (format: Format): boolean => held[format].size > 0 && areOfFormat(given, format);
  const other =
    given.has('format') || held[requested.format].size > 0 ? undefined : FORMATS.find((each) => fits(each));
  const settings = held[other ?? requested.format].newest()?.settings;
  if (settings === undefined) return requested;
  const own = Object.entries(requested).filter(([name]) => given.has(name as keyof Settings));
  return { ...settings, ...Object.fromEntries(own) };
}

/** Whether these settings change files of the format. */
export const areOfFormat = (given: ReadonlySet<keyof Settings>, format: Format): boolean =>
  [...given].every((name) => RELEVANT[format].includes(name));

/** The value of a setting. Values of `timestamps` that make the same files are equal. */
function valueOf(settings: Settings, name: keyof Settings): Settings[keyof Settings] {
  if (name !== 'timestamps') return settings[name];
  const { format, timestamps } = settings;
  // The times of Parquet have no unit, and those of CSV have a time zone only as ISO texts with Z.
  if (format === 'parquet') return timestamps === 'utc' ? 'utc' : 'us';
  return timestamps === 'utc' ? 'iso' : timestamps;
}

/** The names of the requested settings that differ from the first held ones that differ; empty if none differ. */
export function differingSettings(
  held: Iterable<Settings>,
  requested: Settings,
): readonly (keyof Settings)[] {
  const names = RELEVANT[requested.format];
  const namesOf = (settings: Settings): readonly (keyof Settings)[] =>
    names.filter((name) => valueOf(settings, name) !== valueOf(requested, name));
  return [...held].map(namesOf).find((some) => some.length > 0) ?? [];
}

/**
 * Throws a usage error with the folder and the differences, unless the run continues the series. Only the newest
 * commit decides: objects with other settings are left by a rewrite that did not end.
 */
export function checkSettings(
  series: Series,
  folder: string,
  { held, requested }: { readonly held: HeldObjects; readonly requested: Settings },
): void {
  const newest = held.newest()?.settings;
  const names = newest === undefined ? [] : differingSettings([newest], requested);
  if (newest === undefined || names.length === 0) return;
  const texts = names.map((name) => {
    const flag = name === 'asPublished' ? 'as-published' : name;
    return `${flag} ${valueOf(newest, name)}, but --${flag} is ${valueOf(requested, name)}`;
  });
  throw usage(
    `${seriesName(series)} in ${folder} was written with ${texts.join(' and ')}`,
    'give these settings, another --out, or --force to rewrite the series',
  );
}
