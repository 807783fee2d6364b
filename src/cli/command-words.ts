/** Splits a command line into its words: verb, flags, values. */
import { VERBS } from '../options/flag-spec.js';
import { FLAG_NAMES, flagsOf, flagSpec, isSwitch } from '../options/flags.js';
import { nearest } from '../text/did-you-mean.js';
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

const NOT_SCHEDULABLE: readonly Verb[] = ['schedule', 'list', 'schema', 'serve', 'completion', 'man'];

/** Flags that every verb has, without a row in the flag table. */
export const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h', '--help-all']);
const FLAGS_WITHOUT_ROW: ReadonlySet<string> = new Set(['--no-progress', ...HELP_FLAGS]);

/**
 * The words in order, with long flags in place of short ones. An unknown flag without `=` takes the next word as its value, if that
 * word is not a flag.
 */
export function wordsOf(line: readonly string[], verb: Verb): Word[] {
  const known = flagsOf(verb);
  const argv = withLongFlags(line, known);
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
    } else if (!isFlag(text)) {
      words.push({ text, kind: 'operand' });
    } else if (FLAGS_WITHOUT_ROW.has(text)) {
      words.push({ text, kind: 'flag' });
    } else {
      const flag = known.find((name) => text === `--${name}` || text.startsWith(`--${name}=`));
      words.push(flag === undefined ? { text, kind: 'unknown-flag' } : { text, kind: 'flag', flag });
      const next = argv[at + 1];
      const takesValue = flag === undefined ? !text.includes('=') : !isSwitch(flag) && text === `--${flag}`;
      if (!takesValue || next === undefined || isFlag(next)) continue;
      words.push({ text: next, kind: 'value', ...(flag === undefined ? {} : { flag }) });
      at += 1;
    }
  }
  return words;
}

/** `-` is stdin, also in a list: `-,BTCUSDT`. */
function isFlag(word: string): boolean {
  return word.startsWith('-') && !/^-(?:,|$)/.test(word);
}

function withLongFlags(argv: readonly string[], known: readonly FlagName[]): string[] {
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  return [...argv.slice(0, end).flatMap((word) => longFlags(word, known) ?? [word]), ...argv.slice(end)];
}

/** `-nq` → `--dry-run`, `--quiet`; `-d7` and `-d=7` → `--days=7`. Undefined for a word with another flag, and for `-symbols`. */
function longFlags(word: string, known: readonly FlagName[]): string[] | undefined {
  if (!/^-[a-z]/i.test(word) || isLongName(word.slice(1))) return undefined;
  const flags: string[] = [];
  for (let at = 1; at < word.length; at += 1) {
    const flag = known.find((name) => flagSpec(name).short === word[at]);
    if (flag === undefined) return undefined;
    const rest = word.slice(at + 1);
    if (rest !== '' && (!isSwitch(flag) || rest.startsWith('=')))
      return [...flags, `--${flag}=${rest.replace(/^=/, '')}`];
    flags.push(`--${flag}`);
  }
  return flags;
}

/** Whether the word after a single hyphen is a long flag: `-outdir x` must not mean the folder `utdir`. */
function isLongName(word: string): boolean {
  const [name = ''] = word.split('=');
  if (name.length < 3) return false;
  const isName = FLAG_NAMES.some((flag) => flag === name || flagSpec(flag).aka?.includes(name) === true);
  return isName || (/^[a-z-]{5,}$/.test(name) && nearest(name, FLAG_NAMES) !== undefined);
}

export function textsOf(words: readonly Word[]): string[] {
  return words.map(({ text }) => text);
}
