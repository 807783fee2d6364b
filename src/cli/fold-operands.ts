/** Turns positional arguments of a corrected line into values of flags. */
import { flagSpec } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import { textsOf, wordsOf } from './command-words.js';

/** In corrected lines of these verbs, positional arguments become values of flags. */
export const FOLDING: readonly Verb[] = ['vision', 'coverage'];

/** Turns positional arguments into values of flags: markets, datasets, intervals, the folder of a lake, and otherwise symbols. */
export function folded(argv: readonly string[], verb: Verb): string[] {
  const words = wordsOf(argv, verb);
  const loose = FOLDING.includes(verb) ? words.filter(({ kind }) => kind === 'operand') : [];
  if (loose.length === 0) return [...argv];
  const flagOf = (text: string): FlagName => {
    if (verb === 'coverage' && /[./]/.test(text)) return 'out';
    const flags = ['market', 'dataset', 'interval'] as const;
    return flags.find((flag) => flagSpec(flag).choices?.includes(text)) ?? 'symbols';
  };
  let line = textsOf(words.filter((word) => !loose.includes(word)));
  for (const { text } of loose) line = withItem(line, verb, flagOf(text), text);
  return line;
}

/** The line with `item` as a value of the flag: added to the values of a list, or in place of a single value. */
function withItem(argv: readonly string[], verb: Verb, flag: FlagName, item: string): string[] {
  const words = wordsOf(argv, verb);
  const at = words.findIndex(({ kind, flag: of }) => kind === 'value' && of === flag);
  if (at < 0) return [...argv, `--${flag}`, item];
  return textsOf(words).map((text, index) => {
    if (index !== at || text === item) return text;
    // `A, B` and `A ,B` have a comma already.
    const items = [text.replace(/,+$/, ''), item.replace(/^,+/, '')];
    return flagSpec(flag).list === undefined ? item : items.join(',');
  });
}
