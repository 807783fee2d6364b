/** Reads the verb of a command line: its name, another name, or no verb at all for a download. */
import { usage } from '../model/errors.js';
import { VERBS } from '../options/flag-spec.js';
import type { Verb } from '../options/flag-spec.js';
import { didYouMean } from '../text/did-you-mean.js';
import { VERB_TEXTS } from './verbs.js';

/** The first word of a download without a verb: a flag, or a symbol like BTCUSDT or BTC/USDT. */
const DOWNLOAD = /^-.|^[\p{Lu}\p{Lo}\d*]{5,}(?:_\w+)?$|^[A-Z\d]+[/-][A-Z]+/u;

/** The verb of a line, and the words for it. Throws a usage error for an unknown command. */
export function readVerb(line: readonly string[]): {
  readonly verb: Verb;
  readonly words: readonly string[];
} {
  const [first = '', ...rest] = line;
  const name = kebabCase(first);
  const verb = VERBS.find((known) => known === name || VERB_TEXTS[known].aka.includes(name));
  if (verb !== undefined) return { verb, words: rest };
  // `cryptodl datasets` is `cryptodl list datasets`, and `cryptodl freqtrade` is `cryptodl export freqtrade`.
  const owner = VERBS.find((known) => VERB_TEXTS[known].choices?.includes(name));
  if (owner !== undefined) return { verb: owner, words: line };
  if (DOWNLOAD.test(first)) return { verb: 'vision', words: line };
  if (first === '') throw usage('no command given', 'for example: cryptodl vision -s BTCUSDT -d 1');
  throw usage(`"${first}" is not a command`, didYouMean(name, VERBS) ?? 'cryptodl --help shows the commands');
}

/** `dryRun`, `dry_run` and `DRY-RUN` are `dry-run`. */
export function kebabCase(name: string): string {
  return name
    .replaceAll('_', '-')
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`)
    .toLowerCase();
}
