/** The command line (commander): its words, and the flags of the flag table with all their names. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, Option } from 'commander';
import { usage } from '../model/errors.js';
import { listText } from '../model/units.js';
import { TOOL_VERSION } from '../model/version.js';
import { FLAG_NAMES, flagSpec, isSwitch } from '../plan/options/flags.js';
import type { FlagName } from '../plan/options/flags.js';
import { OTHER_FLAGS } from '../plan/options/other-flags.js';
import type { OtherFlag } from '../plan/options/other-flags.js';
import type { Invocation, RawValues } from '../plan/options/resolve.js';
import { flagsOf } from '../plan/options/verb-spec.js';
import type { VerbName, VerbSpec, VerbSpecs } from '../plan/options/verb-spec.js';
import { didYouMean } from '../text/did-you-mean.js';
import { helpText } from './help.js';
import type { Tier } from './help.js';

/** Parses a command line. Undefined after help or the version was printed. Throws usage errors. */
export function parseCommandLine(
  argv: readonly string[],
  verbs: VerbSpecs,
  stdout: { readonly write: (text: string) => unknown; readonly columns?: number },
): Invocation | undefined {
  const line = withPlainFlags(argv);
  const [first = '', second] = line;
  if (['--version', '-V', 'version'].includes(first) || (first === '-v' && second === undefined)) {
    stdout.write(`${TOOL_VERSION}\n`);
    return undefined;
  }
  const isOfProgram = first === 'help' || HELP_FLAGS.has(first);
  const named = isOfProgram && (second === undefined || second.startsWith('-'));
  const printHelp = (verb: VerbSpec | undefined, given: readonly string[]): undefined => {
    const tier: Tier = given.includes('--help-all') ? 'all' : 'brief';
    stdout.write(helpText(verb, verbs, tier, stdout.columns));
  };
  if (named) return printHelp(undefined, line);
  const { verb, words } = readVerb(isOfProgram ? line.slice(1) : line, verbs);
  const end = words.indexOf('--');
  const own = end < 0 ? words : words.slice(0, end);
  if (isOfProgram || own.some((word) => HELP_FLAGS.has(word)) || (own[0] === 'help' && own.length === 1))
    return printHelp(verb, own);
  const { loose, given } = parseWords(verb, words, verbs);
  const toValues = (all: readonly Given[]): RawValues => rawValues(verb, all, verbs);
  if (verb.behind !== undefined) return { verb, operand: undefined, values: toValues(given), behind: loose };
  const { operand, values } = readOperands(verb, loose);
  if (operand === undefined && verb.operand?.startsWith('<') === true)
    throw usage(
      `${verb.name} needs a ${verb.operand.slice(1, -1)}`,
      `for example: ${verb.examples[0] ?? ''}`,
    );
  return { verb, operand, values: toValues([...given, ...values]), behind: [] };
}

const HELP_FLAGS: ReadonlySet<string> = new Set(['--help', '-h', '--help-all']);

type Given = readonly [flag: FlagName, text: string];

/** The words without a flag, and the values of the flags. */
function parseWords(
  verb: VerbSpec,
  words: readonly string[],
  verbs: VerbSpecs,
): { loose: string[]; given: Given[] } {
  const given: Given[] = [];
  const command = new Command(verb.name)
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .helpOption(false)
    .argument('[words...]');
  // The flags after the first word are flags of the command that `schedule` repeats.
  if (verb.behind !== undefined) command.passThroughOptions();
  const add = (name: string, isAlone: boolean, read: (typed: string, value: string) => void): void => {
    const typed = name.length === 1 ? `-${name}` : `--${name}`;
    const option = new Option(isAlone ? typed : `${typed} <value>`);
    command.addOption(option).on(`option:${option.name()}`, (value = '') => {
      read(typed, value as string);
    });
  };
  for (const [name, flag] of namedFlags(verb))
    add(name, flag.isSwitch === true, (typed, value) => given.push(...readFlag(verb, flag, typed, value)));
  try {
    command.parse([...words], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    const [typed = ''] = /(?<=')-[^ =']+/.exec(error.message) ?? [];
    if (error.code !== 'commander.optionMissingArgument') throw unknownFlag(verb, typed, verbs);
    throw needsValue(verb, typed);
  }
  return { loose: command.args, given };
}

/** Throws usage errors for a missing value, and for one without a meaning. */
function readFlag(
  verb: VerbSpec,
  { isSwitch: isAlone, valuesOf, hint }: OtherFlag,
  typed: string,
  value: string,
): Given[] {
  if (isAlone !== true && (value === '' || /^--?[a-z]/i.test(value))) throw needsValue(verb, typed);
  const values = valuesOf(value);
  if (values === undefined) throw usage(`${[typed, value].join(' ').trim()} has no meaning here`, hint);
  return FLAG_NAMES.flatMap((flag) => (values[flag] === undefined ? [] : [[flag, values[flag]] as const]));
}

function needsValue(verb: VerbSpec, typed: string): Error {
  return usage(`${typed} needs a value`, `see cryptodl ${verb.name} --help`);
}

/** The flags of a verb by all their names, and flags of other tools. */
function namedFlags(verb: VerbSpec): ReadonlyMap<string, OtherFlag> {
  const named = new Map<string, OtherFlag>();
  const add = (name: string | undefined, flag: OtherFlag): void => {
    if (name !== undefined && !named.has(name)) named.set(name, flag);
  };
  const flags = flagsOf(verb).map((name) => ({ name, row: flagSpec(name), flag: ownFlag(name) }));
  for (const { name, row, flag } of flags) {
    add(name, flag);
    add(row.short, flag);
  }
  for (const { name, row, flag } of flags)
    for (const other of row.aka ?? []) {
      if (row.choices?.includes(other) !== true) add(other, flag);
      // `--csv` is `--format csv`. `verify --csv` would only select series, and the user expects the form of the output.
      else if (verb.meanings?.[name]?.narrows !== true)
        add(other, { isSwitch: true, valuesOf: () => ({ [name]: other }) });
    }
  for (const [name, flag] of Object.entries(OTHER_FLAGS)) add(name, flag);
  for (const { row, flag } of flags) add(row.short?.toUpperCase(), flag);
  return named;
}

function ownFlag(name: FlagName): OtherFlag {
  const isAlone = isSwitch(name);
  return {
    ...(isAlone ? { isSwitch: true } : {}),
    valuesOf: (text) => ({ [name]: isAlone && text === '' ? 'true' : text }),
  };
}

/** Several values of a flag stay in their order. */
function rawValues(verb: VerbSpec, given: readonly Given[], verbs: VerbSpecs): RawValues {
  const values: RawValues = {};
  for (const [flag, text] of given) {
    if (!flagsOf(verb).includes(flag)) throw unknownFlag(verb, `--${flag}`, verbs);
    values[flag] = [...(values[flag] ?? []), text];
  }
  return values;
}

/** The flags in their usual spelling: `--outDir`, `--OUT_DIR`, `-outdir`, `-d=7` and a long dash of a word processor. */
function withPlainFlags(argv: readonly string[]): string[] {
  const known = new Set<string>([
    ...FLAG_NAMES.flatMap((name) => [name, ...(flagSpec(name).aka ?? [])]),
    ...Object.keys(OTHER_FLAGS),
  ]);
  const end = argv.includes('--') ? argv.indexOf('--') : argv.length;
  return argv.map((word, at) => {
    const [, name = '', value = ''] = /^[-\u2010-\u2015\u2212]{1,2}([a-z][\w-]+)(=.*)?$/is.exec(word) ?? [];
    const plain = kebabCase(name);
    if (at < end && /^-[a-z]=/i.test(word)) return word.replace('=', '');
    return at < end && known.has(plain) ? `--${plain}${value}` : word;
  });
}

function unknownFlag(verb: VerbSpec, typed: string, verbs: VerbSpecs): Error {
  const owners = Object.values(verbs).filter((other) =>
    flagsOf(other).some((flag) => typed === `--${flag}` || typed === `-${flagSpec(flag).short ?? ''}`),
  );
  const place = verb.name === 'run' ? '; write it into the file of jobs' : '';
  const names = flagsOf(verb).map((name) => `--${name}`);
  return usage(
    `${verb.name} has no flag ${typed}`,
    owners.length > 0
      ? `${typed} is a flag of ${listText(
          owners.map(({ name }) => name),
          4,
        )}${place}`
      : (didYouMean(typed, names) ?? `see cryptodl ${verb.name} --help`),
  );
}

/** The first word of a download without a verb: a flag, or a symbol like BTCUSDT or BTC/USDT. */
const DOWNLOAD = /^-.|^[\p{Lu}\p{Lo}\d*]{5,}(?:_\w+)?$|^[A-Z\d]+[/-][A-Z]+/u;

/** The verb of a line, and the words for it. Throws a usage error for an unknown command. */
function readVerb(
  line: readonly string[],
  verbs: VerbSpecs,
): {
  readonly verb: VerbSpec;
  readonly words: readonly string[];
} {
  const all = Object.values(verbs);
  const [first = ''] = line;
  const name = kebabCase(first);
  for (const count of [2, 1]) {
    const typed = kebabCase(line.slice(0, count).join(' '));
    const verb = all.find((known) => known.name === typed || known.aka.includes(typed));
    if (verb !== undefined) return { verb, words: line.slice(count) };
  }
  // `cryptodl datasets` is `cryptodl list datasets`, and `cryptodl freqtrade` is `cryptodl export freqtrade`.
  const owner = all.find((known) => known.choices?.includes(name));
  if (owner !== undefined) return { verb: owner, words: line };
  if (DOWNLOAD.test(first)) return { verb: verbs.vision, words: line };
  if (first === '') throw usage('no command given', 'for example: cryptodl vision -s BTCUSDT -d 1');
  throw usage(
    `"${first}" is not a command`,
    didYouMean(
      name,
      all.map((known) => known.name),
    ) ?? 'cryptodl --help shows the commands',
  );
}

/** `dryRun`, `dry_run` and `DRY-RUN` are `dry-run`. */
function kebabCase(name: string): string {
  return name
    .replaceAll('_', '-')
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`)
    .toLowerCase();
}

// The words that belong to no flag: the operand of the verb, and values of flags.

/**
 * The operand, and the words that are values of flags: symbols, markets, datasets, intervals, the folder of the lake. Throws a usage error
 * for a word without a meaning.
 */
function readOperands(
  verb: VerbSpec,
  words: readonly string[],
): { operand: string | undefined; values: Given[] } {
  const { operand, examples } = verb;
  const hasOperand = operand !== undefined;
  const values = words.slice(hasOperand ? 1 : 0).map((word) => {
    const flag = flagOf(verb, word);
    if (flag === undefined)
      throw usage(
        `${verb.name} takes ${hasOperand ? 'one' : 'no'} argument: "${word}" is one too many`,
        `for example: ${examples[0] ?? ''}`,
      );
    return [flag, word] as const;
  });
  return { operand: hasOperand ? words[0] : undefined, values };
}

function flagOf(verb: VerbSpec, word: string): FlagName | undefined {
  const flags = flagsOf(verb);
  if (flags.includes('html') && /\.html?$/i.test(word)) return 'html';
  const named = (['market', 'dataset', 'interval'] as const).find(
    (name) => flags.includes(name) && word.split(',').every((part) => isValueOf(name, part)),
  );
  if (named !== undefined) return named;
  if (isPlace(word)) {
    // Any folder but a lake is the target of an export, also a new one.
    if (flags.includes('target') && !existsSync(join(word, '_manifests'))) return 'target';
    return flags.includes('out') ? 'out' : undefined;
  }
  // Downloads take any word as symbols. Other verbs take none with small letters: `verify lake2` without such a folder is a mistake.
  const isSymbolList = TAKE_ANY_SYMBOL.includes(verb.name) || !/\p{Ll}/u.test(word) || word.startsWith('@');
  return flags.includes('symbols') && isSymbolList ? 'symbols' : undefined;
}

/** Whether the flag takes this text, in any of its accepted forms. */
function isValueOf(name: 'market' | 'dataset' | 'interval', text: string): boolean {
  const { choices, parse } = flagSpec(name);
  try {
    return choices?.some((choice) => choice === parse(text, name)) === true;
  } catch {
    return false;
  }
}

/** Whether the word is a path, the address of a bucket or an existing folder. A word like BTCUSDT is a symbol, also if a folder has this name. */
function isPlace(word: string): boolean {
  if (/^(?:\.{0,2}\/|~|s3:|\.{1,2}$)/i.test(word)) return true;
  // existsSync comes first: statSync throws for a query that is longer than a path can be.
  return !/^[\p{Lu}\d]{5,}(?:_\w+)?$/u.test(word) && existsSync(word) && statSync(word).isDirectory();
}

const TAKE_ANY_SYMBOL: readonly VerbName[] = ['vision', 'metrics', 'audit', 'enqueue'];
