/** The settings that a new series takes from the series beside it, so that readers can open the folder of a dataset as one table. */
import { join } from 'node:path';
import { FOLDERS, safeName, seriesAt, seriesFolder } from '../lake/layout.js';
import { MANIFEST_ENDING } from '../lake/manifest-place.js';
import type { Manifests } from '../lake/manifests.js';
import { checkedFolder } from '../lake/path-checks.js';
import { listEntries } from '../lake/walk-lake.js';
import type { Format, Series, Settings } from '../model/task.js';
import type { Source } from '../source/source.js';

/** They decide about the types of the columns. */
const SHARED = ['timestamps', 'numbers'] as const;
export type SharedSettings = Pick<Settings, (typeof SHARED)[number]>;

export interface DatasetSettingsOptions {
  readonly root: string;
  readonly venue: Source;
  readonly manifests: Pick<Manifests, 'of'>;
}

export class DatasetSettings {
  readonly #options: DatasetSettingsOptions;
  readonly #known = new Map<string, Promise<SharedSettings | undefined>>();

  constructor(options: DatasetSettingsOptions) {
    this.#options = options;
  }

  /** The settings of the first held series of the dataset and format; undefined without one. Rejects like `readManifest`. */
  of({ market, dataset }: Series, format: Format): Promise<SharedSettings | undefined> {
    const name = `${market} ${dataset} ${format}`;
    const known = this.#known.get(name) ?? this.#read(market, dataset, format);
    this.#known.set(name, known);
    return known;
  }

  async #read(market: string, dataset: string, format: Format): Promise<SharedSettings | undefined> {
    const { root, venue, manifests } = this.#options;
    for await (const series of knownSeries({ root, venue }, market, safeName(dataset))) {
      const held = await manifests.of(join(root, seriesFolder(venue.name, series)));
      const settings = held[format].newest()?.settings;
      if (settings !== undefined) return settings;
    }
    return undefined;
  }
}

/** The series of a market, or of a folder of it, that have a manifest. */
export async function* knownSeries(
  { root, venue }: Pick<DatasetSettingsOptions, 'root' | 'venue'>,
  ...folders: readonly string[]
): AsyncGenerator<Series> {
  for await (const path of manifestsBelow(root, [venue.name, ...folders].join('/'))) {
    const series = seriesAt(venue, path);
    if (series !== undefined) yield series;
  }
}

/** The folders of series, relative to the root, that have a manifest: with and without the folder of an interval. */
async function* manifestsBelow(root: string, folder: string): AsyncGenerator<string> {
  const { files, folders } = await listEntries(await checkedFolder(root, `${FOLDERS.manifests}/${folder}`));
  for (const file of files)
    if (file.endsWith(MANIFEST_ENDING)) yield `${folder}/${file.slice(0, -MANIFEST_ENDING.length)}`;
  for (const name of folders) yield* manifestsBelow(root, `${folder}/${name}`);
}

/** The settings with those of the dataset, where none was given. */
export function withDatasetSettings(
  settings: Settings,
  given: ReadonlySet<keyof Settings>,
  shared: SharedSettings | undefined,
): Settings {
  if (shared === undefined) return settings;
  const taken = SHARED.filter((name) => !given.has(name)).map((name) => [name, shared[name]] as const);
  return { ...settings, ...Object.fromEntries(taken) };
}
