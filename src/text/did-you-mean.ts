import { distance } from 'fastest-levenshtein';

/** A hint that names the nearest candidate, when one is near enough to be a typo. */
export function didYouMean(text: string, candidates: readonly string[]): string | undefined {
  const near = nearest(text, candidates);
  return near === undefined ? undefined : `did you mean ${near}?`;
}

/** Case does not count; of equally near ones that with the same letters, then the first. */
export function nearest(text: string, candidates: readonly string[]): string | undefined {
  if (text.length > 64) return undefined;
  const typed = text.toLowerCase();
  const typedLetters = letters(typed);
  let best: { candidate: string; far: number } | undefined;
  for (const candidate of candidates) {
    const folded = candidate.toLowerCase();
    let far = distance(typed, folded);
    // Only a tie is worth a look at the letters.
    if (best !== undefined && far > best.far + 0.5) continue;
    if (letters(folded) === typedLetters) far -= 0.5;
    if (best === undefined || far < best.far) best = { candidate, far };
  }
  const allowed = Math.max(1, Math.floor(text.length / 3));
  return best !== undefined && best.far <= allowed ? best.candidate : undefined;
}

function letters(text: string): string {
  return text.split('').sort().join('');
}
