/** What the planner makes of damaged listings. */
import { strict as assert } from 'node:assert';
import { createListing } from '../../src/exchange/listing.js';
import { parseListing, S3_LISTING } from '../../src/exchange/s3-listing.js';
import type { ListingPage } from '../../src/exchange/exchange.js';
import { FOLDER, LISTINGS } from './bodies.js';
import { mutate } from './mutations.js';
import type { Random } from './mutations.js';
import { readPage } from './readers.js';
import { refusedAs } from './torture.js';

export async function readDamagedPage(random: Random): Promise<string> {
  const sound = random.pick(LISTINGS);
  const { bytes } = mutate(random, sound, LISTINGS);
  const right = readPage(bytes);
  let page: ListingPage;
  try {
    page = parseListing(bytes);
    await walk(page);
  } catch (error) {
    return refusedAs(error, ['listing-malformed']);
  }
  const { objects, prefixes, truncated } = page;
  assert.deepEqual({ objects, prefixes, truncated: String(truncated) }, right, bytes.toString('utf8'));
  for (const names of [objects.map(({ key }) => key), prefixes]) {
    const inPlace = [...new Set(names)].filter((name) => name.startsWith(FOLDER));
    assert.deepEqual(names, inPlace.sort(byBytes), 'names out of their place');
  }
  return changeOf(namesIn(parseListing(sound)), namesIn(page));
}

/** As the planner goes through pages: the damaged one, then the end. */
async function walk(first: ListingPage): Promise<void> {
  for (const way of ['objects', 'folders'] as const) {
    const pages = [first];
    const end = { objects: [], prefixes: [], truncated: false };
    const listing = createListing(() => Promise.resolve(pages.shift() ?? end), S3_LISTING);
    for await (const name of listing[way](FOLDER)) void name;
  }
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function namesIn({ objects, prefixes }: ListingPage): Set<string> {
  return new Set([...objects.map(({ key }) => key), ...prefixes]);
}

/** What no reader can notice by itself: the damage left a listing that could be one. */
function changeOf(before: ReadonlySet<string>, after: ReadonlySet<string>): string {
  const lost = [...before].filter((name) => !after.has(name)).length;
  const added = [...after].filter((name) => !before.has(name)).length;
  if (lost === 0 && added === 0) return 'read, of the same names';
  if (added === 0) return 'read, as a listing of fewer names';
  return lost === added ? 'read, with another name' : 'read, as another listing';
}
