/**
 * Orders two keys as the archive does: by the bytes of their UTF-8 form (facts: vision-archive.md 3.2).
 * The order of JavaScript strings differs where a surrogate pair meets U+E000..U+FFFF.
 */
export function compareKeys(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Moves surrogates behind the rest of the basic plane, where their code points are. */
function rank(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
