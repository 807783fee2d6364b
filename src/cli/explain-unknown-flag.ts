/** Explains a flag that the command does not have: another name, a flag of another tool or of another command, or an operand. */
import { CryptodlError } from '../model/errors.js';
import { noConfigFile } from '../options/jobs-file.js';
import { VERBS } from '../options/flag-spec.js';
import type { FlagSpec, Verb } from '../options/flag-spec.js';
import { flagSpec, flagsOf, isSwitch } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { SECRET_ADDRESSES } from '../options/value-text.js';
import { nearest } from '../text/did-you-mean.js';
import { yamlWord } from '../text/printable.js';
import { textsOf, verbOf, wordsOf } from './command-words.js';
import type { Word } from './command-words.js';
import { folded } from './fold-operands.js';
import { foreignFlag } from './foreign-words.js';
import { VERB_TEXTS } from './verbs.js';

/** The message about an unknown flag, and the line in which that flag is corrected, moved or removed, if its meaning is known. */
interface UnknownFlag {
  readonly message: string;
  readonly hint?: string;
  readonly argv: readonly string[] | undefined;
}

/** Corrects, moves or removes each unknown flag of a line. Undefined if `explainUnknown` has no line for one of them. */
export function withKnownFlags(argv: readonly string[]): readonly string[] | undefined {
  const verb = verbOf(argv);
  const words = verb === undefined ? [] : wordsOf(argv, verb);
  const unknown = words.find(({ kind }) => kind === 'unknown-flag');
  if (verb === undefined || unknown === undefined) return argv;
  const { argv: next } = explainUnknown(verb, words, unknown);
  return next === undefined ? undefined : withKnownFlags(next);
}

interface Owner {
  readonly verb: Verb;
  readonly flag: FlagName;
}

/** An unknown flag with its value, and the words around it. */
interface UnknownParts {
  readonly verb: Verb;
  readonly words: readonly Word[];
  readonly unknown: Word;
  /** The flag without its value. */
  readonly typed: string;
  /** `typed` without hyphens at the start, and with hyphens between its words: `dry_run` and `dryRun` are `dry-run`. */
  readonly plain: string;
  /** The value after `=`. */
  readonly carried: string | undefined;
  /** The value after `=`, or the next word. */
  readonly value: string | undefined;
  readonly before: readonly string[];
  /** The words after the flag and its value. */
  readonly after: readonly string[];
  /** The verbs that have the flag. */
  readonly owners: readonly Owner[];
  /** The first of the owners. */
  readonly owner: Owner | undefined;
}

function partsOf(verb: Verb, words: readonly Word[], unknown: Word): UnknownParts {
  const [typed = '', carried] = unknown.text.split(/=(.*)/s);
  const at = words.indexOf(unknown);
  const next = words[at + 1];
  const plain = typed
    .replace(/^-+/, '')
    .replaceAll('_', '-')
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const owners = VERBS.flatMap((candidate) => {
    const flag = flagsOf(candidate).find((name) => name === plain || `-${flagSpec(name).short}` === typed);
    return flag === undefined ? [] : { verb: candidate, flag };
  });
  const [owner] = owners;
  // The word after a switch is not its value.
  const hasValue = next?.kind === 'value' && (owner === undefined || !isSwitch(owner.flag));
  const value = carried ?? (hasValue ? next.text : undefined);
  const before = textsOf(words.slice(0, at));
  const after = textsOf(words.slice(at + (hasValue ? 2 : 1)));
  return { verb, words, unknown, typed, plain, carried, value, before, after, owners, owner };
}

/** Explains an unknown flag: as another name of a known flag, as a flag of another command, or as an operand. */
export function explainUnknown(verb: Verb, words: readonly Word[], unknown: Word): UnknownFlag {
  const parts = partsOf(verb, words, unknown);
  return (
    explainCase(parts) ??
    explainForeign(parts) ??
    explainOtherName(parts) ??
    explainFlagOfJob(parts) ??
    explainOperand(parts) ??
    explainFlagBehind(parts) ??
    explainOwner(parts)
  );
}

const SHORT = /^-[a-z]$/i;

/** Explains a short flag in the other case: `-O x` means `-o x`, if that flag accepts the value. */
function explainCase({ verb, typed, value, before, after }: UnknownParts): UnknownFlag | undefined {
  if (!SHORT.test(typed)) return undefined;
  const letter = typed.slice(1).toLowerCase();
  const known = flagsOf(verb).find((name) => flagSpec(name).short === letter);
  if (known === undefined || (!isSwitch(known) && (value === undefined || !canMean(known, value))))
    return undefined;
  return {
    message: `${verb} has no flag ${typed}`,
    hint: `did you mean -${letter} (--${known})?`,
    argv: [...before, `--${known}`, ...(value === undefined ? [] : [value]), ...after],
  };
}

/** Explains another name of a flag, or a mistyped flag. */
function explainOtherName({
  verb,
  typed,
  plain,
  carried,
  value,
  before,
  after,
}: UnknownParts): UnknownFlag | undefined {
  const names = flagsOf(verb);
  const near = nearest(plain, names);
  const isPossible = (name: FlagName): boolean => value === undefined || canMean(name, value);
  const known =
    names.find((name) => name === plain) ??
    // A letter means different flags in different tools, so the value decides.
    names.find(
      (name) =>
        flagSpec(name).aka?.includes(plain) === true &&
        // A format as a flag (`--csv`) is the form of the output; here the flag would only select series of the lake.
        !(
          flagSpec(name).narrows?.includes(verb) === true && flagSpec(name).choices?.includes(plain) === true
        ) &&
        (!SHORT.test(typed) || isPossible(name)),
    ) ??
    names.find((name) => name === near && isPossible(name));
  if (known === undefined) return undefined;
  const given = isSwitch(known)
    ? [`--${known}`, ...(value === undefined || carried !== undefined ? [] : [value])]
    : [`--${known}`, value ?? exampleValue(known, plain)];
  const shown = carried === undefined ? given : [given.join('=')];
  return {
    message: `${verb} has no flag ${typed}`,
    hint: `did you mean --${known}?`,
    argv: folded([...before, ...shown, ...after], verb),
  };
}

/** Explains a flag of `run` that belongs into the file of jobs. */
function explainFlagOfJob({
  verb,
  words,
  typed,
  value,
  before,
  after,
  owner,
}: UnknownParts): UnknownFlag | undefined {
  if (verb !== 'run' || (owner?.verb !== 'vision' && owner?.verb !== 'metrics')) return undefined;
  const argv = [...before, ...after];
  const file = wordsOf(argv, verb).find(({ kind }) => kind === 'operand')?.text;
  if (file === undefined) {
    const flags = textsOf(words.filter(({ kind }) => kind !== 'verb' && kind !== 'operand'));
    return {
      message: `run has no flag ${typed}: write the options of a job into the file of jobs`,
      argv: [owner.verb, ...flags],
    };
  }
  if (owner.flag === 'config') {
    const { message, hint } = noConfigFile('', file);
    return { message, ...(hint === undefined ? {} : { hint }), argv };
  }
  const entry = `${owner.flag}: ${valueInFile(owner.flag, value)}`;
  return {
    message: `run has no flag ${typed}: write it as "${entry}" in the job or under defaults of ${file}`,
    argv,
  };
}

/** Explains an operand that is written like a flag. */
function explainOperand({
  verb,
  words,
  typed,
  plain,
  value,
  before,
  after,
}: UnknownParts): UnknownFlag | undefined {
  const operand = VERB_TEXTS[verb].operand?.slice(1, -1);
  if (operand !== plain || value === undefined || words.some(({ kind }) => kind === 'operand'))
    return undefined;
  return {
    message: `${verb} has no flag ${typed}`,
    hint: `the ${operand} is written without a flag`,
    argv: [...before, value, ...after],
  };
}

/** Explains a flag of the command after `--`. */
function explainFlagBehind({
  verb,
  words,
  unknown,
  typed,
  carried,
  value,
  before,
  after,
  owner,
}: UnknownParts): UnknownFlag | undefined {
  if (VERB_TEXTS[verb].behind === undefined || owner === undefined) return undefined;
  const first = words[words.findIndex(({ text }) => text === '--') + 1]?.text;
  const inner = VERBS.find((name) => name === first);
  if (inner === undefined || !flagsOf(inner).includes(owner.flag)) return undefined;
  const separate = carried === undefined && value !== undefined ? [value] : [];
  return {
    message: `${verb} has no flag ${typed}`,
    hint: `${typed} is a flag of ${inner}: write it after --`,
    argv: [...before, ...after, unknown.text, ...separate],
  };
}

/** Names the commands that have the flag. Without the flag, the line could do more than the user asked for. */
function explainOwner({ verb, typed, before, after, owners, owner }: UnknownParts): UnknownFlag {
  const isOptional = owner !== undefined && LEFT_OUT.includes(flagSpec(owner.flag).group);
  return {
    message: `${verb} has no flag ${typed}`,
    hint:
      owner === undefined
        ? `see cryptodl ${verb} --help`
        : `${typed} is a flag of ${listText(owners.map(({ verb: name }) => name))}`,
    argv: isOptional ? [...before, ...after] : undefined,
  };
}

/** `vision, list and audit` */
function listText(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}

/** Groups whose flags do not change the selected data and files. */
const LEFT_OUT: readonly FlagSpec['group'][] = ['Network', 'Messages'];

/** Explains a flag of another tool. */
function explainForeign({
  verb,
  words,
  unknown,
  typed,
  plain,
  carried,
}: UnknownParts): UnknownFlag | undefined {
  const at = words.indexOf(unknown);
  const next = words[at + 1]?.kind === 'value' ? words[at + 1]?.text : undefined;
  const found = foreignFlag(plain, carried ?? next);
  if (found === undefined) return undefined;
  const entries = Object.entries(found.flags ?? {}).filter(([name]) =>
    flagsOf(verb).some((one) => one === name),
  );
  // The word after a short switch may be its value in another tool (`wget -O FILE`), and not a symbol.
  const isTaken =
    entries.length === Object.keys(found.flags ?? {}).length &&
    !(SHORT.test(typed) && found.isSwitch && next !== undefined);
  const given = entries.flatMap(([name, value]) => [`--${name}`, value]);
  const rest = words.slice(at + (next === undefined || found.isSwitch || carried !== undefined ? 1 : 2));
  const names = entries.map(([name]) => `--${name}`).join(' and ');
  const hint = names === '' ? found.note : `did you mean ${names}?`;
  const line = [...textsOf(words.slice(0, at)), ...given, ...textsOf(rest)];
  return {
    message: `${verb} has no flag ${typed}`,
    ...(hint === undefined ? {} : { hint }),
    argv: found.flags === undefined || !isTaken ? undefined : folded(line, verb),
  };
}

/** The value as YAML that is also valid between braces. */
function valueInFile(flag: FlagName, typed: string | undefined): string {
  const { default: usual, example } = flagSpec(flag);
  const shown = SECRET_ADDRESSES.has(flag) ? undefined : typed;
  return yamlWord(isSwitch(flag) ? 'true' : (shown ?? usual ?? example ?? ''));
}

/** The typed name of the flag if it is a value (`--csv` means `--format csv`), else the default or the example. */
function exampleValue(name: FlagName, typed: string): string {
  const { choices, default: usual, example } = flagSpec(name);
  return choices?.includes(typed) === true ? typed : (usual ?? example ?? '');
}

/** Whether the flag accepts the value, or knows its correction. */
function canMean(name: FlagName, value: string): boolean {
  const { parse, list } = flagSpec(name);
  try {
    for (const item of list === 'comma' ? value.split(',') : [value]) parse(item, '');
    return true;
  } catch (error) {
    return isSwitch(name) || (error instanceof CryptodlError && error.correction !== undefined);
  }
}
