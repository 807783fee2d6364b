/** Which series a lake holds: its folders that have a manifest. */
import { errnoOf } from '../errors.js';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { MANIFEST, originalName } from '../lake/layout.js';
import type { Market, Series } from '../task.js';
import { MARKETS } from '../venue/words.js';

/** In path order; an absent lake holds nothing. */
export async function* heldSeries(root: string, venue: string): AsyncGenerator<Series> {
  for (const market of MARKETS) {
    for (const dataset of await folders(join(root, venue, market))) {
      yield* seriesBelow(join(root, venue, market, dataset), { market, dataset: originalName(dataset) });
    }
  }
}

async function* seriesBelow(
  folder: string,
  above: { market: Market; dataset: string; interval?: string },
): AsyncGenerator<Series> {
  for (const name of await folders(folder)) {
    const path = join(folder, name);
    if (name.startsWith('interval='))
      yield* seriesBelow(path, { ...above, interval: originalName(name.slice('interval='.length)) });
    if (!name.startsWith('symbol=')) continue;
    const entries = await readdir(path);
    if (entries.includes(MANIFEST)) yield { ...above, symbol: originalName(name.slice('symbol='.length)) };
  }
}

async function folders(path: string): Promise<string[]> {
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(error))) return [];
    throw error;
  }
}
