/** Messages name options as flags. This file gives the options other names where the caller gave them in another way. */
import { CryptodlError } from '../model/errors.js';
import { FLAG_NAMES } from './flags.js';
import type { FlagName } from './flags.js';

/** A command of this program in a text, which is typed as it stands, or a flag outside of one. */
const COMMAND_OR_FLAG = /\bcryptodl [a-z][^;,:]*|(?<![\w-])--([a-z][\w-]*)/g;

/** The text with `--max-wait` replaced by what `nameOf` calls it. Commands to be typed and unknown flags stay. */
export function nameOptions(text: string, nameOf: (name: FlagName) => string): string {
  return text.replaceAll(COMMAND_OR_FLAG, (found, word: string | undefined) => {
    const name = FLAG_NAMES.find((flag) => flag === word);
    return name === undefined ? found : nameOf(name);
  });
}

/** The same failure, with its options in message and hint under other names. */
export function withOptionNames(error: CryptodlError, nameOf: (name: FlagName) => string): CryptodlError {
  const { code, message, hint, cause, correction, retryAfterMs, attempts } = error;
  const renamed = new CryptodlError(code, nameOptions(message, nameOf), {
    cause,
    hint: hint === undefined ? undefined : nameOptions(hint, nameOf),
    correction,
    retryAfterMs,
  });
  return Object.assign(renamed, { attempts });
}
