/** Suggestions for mistyped names. */
import { distance } from 'fastest-levenshtein';

/** A hint with the nearest candidate; undefined when no candidate is similar enough. */
export function didYouMean(text: string, candidates: readonly string[]): string | undefined {
  const near = nearest(text, candidates);
  return near === undefined ? undefined : `did you mean ${near}?`;
}

/**
 * The only candidate that begins with the text; else the candidate with the smallest edit distance, ignoring case. Of equal distances, a candidate with the same
 * letters wins, then the first. Undefined if the distance is above 1 and above a third of the length, and for a text of more than 64 characters.
 * A number with a unit of time, like `60m`, has no near name: another number or unit would mean something else.
 */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  if (text.length > LONGEST) return undefined;
  const typed = text.toLowerCase();
  if (QUANTITY.test(text)) return candidates.find((name) => name.toLowerCase() === typed);
  const begun = candidates.filter((candidate) => candidate.toLowerCase().startsWith(typed));
  if (begun.length === 1 && typed.length >= SHORTEST_PART) return begun[0];
  const allowed = Math.max(1, Math.floor(text.length / 3));
  return candidates
    .map((candidate) => ({ candidate, far: distanceOf(typed, candidate.toLowerCase()) }))
    .filter(({ far }) => far <= allowed)
    .sort((one, other) => one.far - other.far)[0]?.candidate;
}

const [SHORTEST_PART, LONGEST] = [3, 64];
const QUANTITY = /^\d+ ?(?:ms|s|sec|second|m|min|minute|h|hr|hour|d|day|w|week|mo|mon|month)?s?$/i;

/** Exchanged letters are nearer than others. */
const distanceOf = (typed: string, name: string): number =>
  distance(typed, name) - (letters(typed) === letters(name) ? 0.5 : 0);

const letters = (text: string): string => text.split('').sort().join('');
