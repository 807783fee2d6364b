import { closest, distance } from 'fastest-levenshtein';

/** A hint that names the nearest candidate, when one is near enough to be a typo. */
export function didYouMean(text: string, candidates: readonly string[]): string | undefined {
  const near = nearest(text, candidates);
  return near === undefined ? undefined : `did you mean ${near}?`;
}

export function nearest(text: string, candidates: readonly string[]): string | undefined {
  if (candidates.length === 0 || text.length > 64) return undefined;
  const folded = new Map(candidates.map((candidate) => [candidate.toLowerCase(), candidate]));
  const best = closest(text.toLowerCase(), [...folded.keys()]);
  const allowed = Math.max(1, Math.floor(text.length / 3));
  return distance(text.toLowerCase(), best) <= allowed ? folded.get(best) : undefined;
}
