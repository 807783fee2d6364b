import { usage } from '../errors.js';
import type { Held } from '../lake/manifest.js';
import { seriesName } from '../task.js';
import type { Format, Series, Settings } from '../task.js';

/** What makes files of a format differ. */
const RELEVANT: Readonly<Record<Format, readonly (keyof Settings)[]>> = {
  parquet: ['partition', 'cadence', 'numbers', 'asPublished'],
  csv: ['partition', 'cadence', 'timestamps', 'asPublished'],
  zip: ['cadence'],
};

/** Settings in which what the series holds differs from what is asked; empty when they agree. */
export function differingSettings(
  held: Held,
  settings: Settings,
): { name: string; held: string; asked: string }[] {
  const names = RELEVANT[settings.format];
  const other = held.lines().find((line) => names.some((name) => line.settings[name] !== settings[name]));
  if (other === undefined) return [];
  return names
    .filter((name) => other.settings[name] !== settings[name])
    .map((name) => ({
      name: flagName(name),
      held: String(other.settings[name]),
      asked: String(settings[name]),
    }));
}

/** Throws the usage error that names the folder. */
export function refuseOtherSettings(
  series: Series,
  folder: string,
  differences: ReturnType<typeof differingSettings>,
): never {
  const texts = differences.map(({ name, held, asked }) => `--${name} ${held}, not ${asked}`);
  throw usage(
    `${seriesName(series)} in ${folder} is held with ${texts.join(' and ')}`,
    `${differences.map(({ name, held }) => (name === 'as-published' ? (held === 'true' ? '--as-published' : 'leave --as-published out') : `--${name} ${held}`)).join(' ')}, another --out, or --force to rewrite the series`,
  );
}

function flagName(name: keyof Settings): string {
  return name === 'asPublished' ? 'as-published' : name;
}
