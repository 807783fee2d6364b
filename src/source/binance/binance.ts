/** Binance: the archive at data.binance.vision, and the REST interfaces of spot and futures. */
import { readDatasetFacts, readHalts, readVenueFacts } from '../facts.js';
import type { Source } from '../source.js';
import { venueOf } from '../venue.js';
import { binanceArchive } from './archive.js';
import { BINANCE_ANSWERS } from './refusals.js';
import { binanceRest } from './rest-session.js';

/** Throws when config/ contradicts itself: a bug of the package, not of the user. */
export function loadBinance(): Source {
  const facts = readVenueFacts();
  const venue = venueOf(facts, readDatasetFacts());
  return {
    ...venue,
    archive: binanceArchive(venue.markets),
    answers: BINANCE_ANSWERS,
    rest: binanceRest(facts.hosts),
    halts: readHalts,
  };
}
