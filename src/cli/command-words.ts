/** Splits a command line into its words: verb, flags, values. */
import { VERBS } from '../options/flag-spec.js';
import { flagsOf, isSwitch } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';

/** A word of a command line, with its meaning. */
export interface Word {
  readonly text: string;
  /** `value`: the value of the flag before it. */
  readonly kind: 'verb' | 'flag' | 'unknown-flag' | 'value' | 'operand';
  /** The flag itself, or the flag of this value. */
  readonly flag?: FlagName;
}

/** The verb of a command line: its first word, or after a leading flag the first word that is a verb. Undefined without a verb. */
export function verbOf(argv: readonly string[]): Verb | undefined {
  const first = argv[0]?.startsWith('-') === true ? argv.find((word) => isVerb(word)) : argv[0];
  return VERBS.find((verb) => verb === first);
}

export function isVerb(word: string): word is Verb {
  return VERBS.some((verb) => verb === word);
}

/** Whether `cryptodl schedule` can repeat the verb. */
export function isSchedulable(verb: Verb): boolean {
  return !NOT_SCHEDULABLE.includes(verb);
}

const NOT_SCHEDULABLE: readonly Verb[] = ['schedule', 'list', 'schema', 'serve', 'completion'];

/** Flags without a row in the flag table, because commander defines them. */
const COMMANDER_FLAGS: ReadonlySet<string> = new Set(['--no-progress', '--help', '-h']);

/** The words in order. An unknown flag without `=` takes the next word as its value, if that word is not a flag. */
export function wordsOf(argv: readonly string[], verb: Verb): Word[] {
  const known = flagsOf(verb);
  const words: Word[] = [];
  let hasVerb = false;
  for (let at = 0; at < argv.length; at += 1) {
    const text = argv[at] ?? '';
    if (text === '--') {
      words.push(...argv.slice(at).map((each) => ({ text: each, kind: 'operand' as const })));
      break;
    }
    if (!hasVerb && text === verb) {
      hasVerb = true;
      words.push({ text, kind: 'verb' });
    } else if (!text.startsWith('-') || text === '-') {
      words.push({ text, kind: 'operand' });
    } else if (COMMANDER_FLAGS.has(text)) {
      words.push({ text, kind: 'flag' });
    } else {
      const flag = known.find((name) => text === `--${name}` || text.startsWith(`--${name}=`));
      words.push(flag === undefined ? { text, kind: 'unknown-flag' } : { text, kind: 'flag', flag });
      const next = argv[at + 1];
      const takesValue = flag === undefined ? !text.includes('=') : !isSwitch(flag) && text === `--${flag}`;
      if (!takesValue || next === undefined || (next.startsWith('-') && next !== '-')) continue;
      words.push({ text: next, kind: 'value', ...(flag === undefined ? {} : { flag }) });
      at += 1;
    }
  }
  return words;
}

export function textsOf(words: readonly Word[]): string[] {
  return words.map(({ text }) => text);
}
