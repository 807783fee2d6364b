/** Whether text output may have colours and characters outside of ASCII. */
import type { Io } from '../model/io.js';

/** On a terminal, unless NO_COLOR or TERM=dumb forbids it; FORCE_COLOR decides before both (no-color.org, force-color.org). */
export function hasColour({ stdout, environment }: Pick<Io, 'stdout' | 'environment'>): boolean {
  const { FORCE_COLOR: forced, NO_COLOR: refused, TERM: terminal } = environment;
  if (forced) return !['0', 'false'].includes(forced);
  return stdout.isTTY === true && !refused && terminal !== 'dumb';
}

/** False if the locale names another encoding than UTF-8. Without a locale, as in containers, terminals still read UTF-8. */
export function isUnicode({ environment }: Pick<Io, 'environment'>): boolean {
  const locale = [environment['LC_ALL'], environment['LC_CTYPE'], environment['LANG']].find(Boolean);
  return locale === undefined || /utf-?8/i.test(locale);
}
