/** Which series a lake holds: its folders that have a manifest. */
import { join } from 'node:path';
import { linkOnTheWay, linkText } from '../lake/inside.js';
import { keyFile, MANIFEST } from '../lake/layout.js';
import { entriesOf, walkLake } from '../lake/walk-lake.js';
import type { SeriesFolder } from '../lake/walk-lake.js';
import { shownPath } from '../shown-path.js';
import type { Series } from '../task.js';
import { seriesPrefix } from '../venue/keys.js';
import type { Venue } from '../venue/venue.js';

/** In path order; an absent lake holds nothing. `warn` is told of what is left out although it looks like a series. */
export async function* heldSeries(
  root: string,
  venue: Venue,
  warn: (message: string) => void,
): AsyncGenerator<Series> {
  for await (const found of walkLake(root, venue)) {
    if (found.kind === 'link' && `${found.path}/`.startsWith(`${venue.name}/`))
      warn(linkText(join(root, found.path)));
    if (found.kind !== 'series') continue;
    if (found.links.includes(MANIFEST)) warn(linkText(join(found.path, MANIFEST)));
    else if (found.files.includes(MANIFEST)) yield found.series;
    else if (await hasFiles(root, venue, found))
      warn(
        `${shownPath(found.path)} has files and no ${MANIFEST}: it is left out; cryptodl verify --fix puts them aside and remembers what they hold, cryptodl repair then fetches that`,
      );
  }
}

/** In its folder, or below the keys of its zips. */
async function hasFiles(root: string, venue: Venue, { series, files }: SeriesFolder): Promise<boolean> {
  if (files.length > 0) return true;
  for (const cadence of ['daily', 'monthly'] as const) {
    const place = keyFile(seriesPrefix(venue, series, cadence).slice(0, -1));
    if ((await linkOnTheWay(root, place)) !== undefined) continue;
    if ((await entriesOf(join(root, place))).files.length > 0) return true;
  }
  return false;
}
