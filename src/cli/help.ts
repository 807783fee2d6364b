/** The texts of `--help` and `--help-all`, made from the tables of verbs and flags, and the man page with the same texts. */
import type { ExitCode } from '../model/exit-code.js';
import { TOOL_VERSION } from '../model/version.js';
import { GROUPS } from '../plan/options/flag-spec.js';
import { environmentName, flagSpec, type FlagName } from '../plan/options/flags.js';
import { flagFor, flagsOf, RUN_EXITS, shownDefault } from '../plan/options/verb-spec.js';
import type { ExitTexts, VerbSpec, VerbSpecs } from '../plan/options/verb-spec.js';
import { fitted, wrap } from '../text/wrap.js';
import type { OfflineCommand } from '../run/verb/verb.js';
import { writeText } from '../terminal/write-data.js';

/** `brief`: the text of `--help`; `all`: the text of `--help-all`. */
export type Tier = 'brief' | 'all';

/** A line of a list: a flag, command or exit code, and its meaning. */
type Item = readonly [term: string, text: string];

export const PURPOSE = 'Bulk crypto market data, complete and verified, in a lake you can query.';
/** The exit codes in the help of the program: those of downloads, with other meanings of code 4. */
const PROGRAM_EXITS: ExitTexts = {
  ...RUN_EXITS,
  4: `${RUN_EXITS[4]}; check: data that no run can fetch; verify, audit: findings; coverage: below --min; export, bars: not made`,
};

const WIDTH = 80;
const WIDEST = 120;
/** A text stands beside its term only if it gets at least this width there. */
const NARROWEST = 36;

/** The help of a verb, or without a verb the help of the program. `columns`: width of the terminal. */
export function helpText(
  verb: VerbSpec | undefined,
  verbs: VerbSpecs,
  tier: Tier,
  columns: number = WIDTH,
): string {
  const width = Math.min(columns, WIDEST);
  const parts = verb === undefined ? programParts(verbs, tier, width) : verbParts(verb, tier, width);
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

function programParts(verbs: VerbSpecs, tier: Tier, width: number): string[] {
  const all = Object.values(verbs);
  const commands = all.map(({ name, operand = '', doc }): Item => [
    `${name} ${operand}`.trimEnd(),
    textFor(doc, tier),
  ]);
  const examples = all.flatMap((verb) => verb.examples.slice(0, tier === 'all' ? 3 : 1));
  return [
    'Usage: cryptodl COMMAND [flags]',
    filled(PURPOSE, width),
    listed('Commands', commands, width),
    examplesPart(tier === 'all' ? examples : examples.slice(0, 3), width),
    exitPart(PROGRAM_EXITS, tier, width),
    filled('cryptodl COMMAND --help shows the flags of a command; --help-all shows more.', width),
  ];
}

function verbParts(verb: VerbSpec, tier: Tier, width: number): string[] {
  const { name, doc, examples, exits } = verb;
  return [
    `Usage: cryptodl ${usageOf(verb)}`,
    filled(`${textFor(doc.charAt(0).toUpperCase() + doc.slice(1), tier)}.`, width),
    ...flagParts(verb, tier, width),
    examplesPart(tier === 'all' ? examples : examples.slice(0, 3), width),
    exitPart(exits, tier, width),
    tier === 'all' ? filled(sourcesText(verb), width) : `cryptodl ${name} --help-all shows more.`,
  ];
}

/** `run [flags] <file>` */
function usageOf(verb: VerbSpec): string {
  const { name, operand, behind } = verb;
  const flags = flagsOf(verb).length > 0 ? ['[flags]'] : [];
  return [name, ...flags, operand ?? [], behind === undefined ? [] : ['--', behind]].flat().join(' ');
}

function flagParts(verb: VerbSpec, tier: Tier, width: number): string[] {
  const flags = flagsOf(tier === 'all' ? verb : { flags: verb.flags });
  // `--help` shows the flags of the groups after How under How.
  const groupOf = (name: FlagName): string => {
    const { group } = flagSpec(name);
    return tier === 'brief' && GROUPS.indexOf(group) > GROUPS.indexOf('How') ? 'How' : group;
  };
  const terms = flags.map(flagTerm);
  return GROUPS.map((group) => {
    const items = flags.filter((name) => groupOf(name) === group).map((name) => flagItem(name, verb, tier));
    return items.length === 0 ? '' : listed(group, items, width, terms);
  });
}

/** `-s, --symbols LIST` */
function flagTerm(name: FlagName): string {
  const { short, value } = flagSpec(name);
  const long = `--${name}${value === undefined ? '' : ` ${value}`}`;
  return `${short === undefined ? '    ' : `-${short}, `}${long}`;
}

function flagItem(name: FlagName, verb: VerbSpec, tier: Tier): Item {
  const shown = shownDefault(name, verb);
  const text = textFor(flagFor(name, verb).doc, tier);
  return [flagTerm(name), shown === undefined ? text : `${text} (default: ${shown})`];
}

/** The whole text, or in the brief help its part before the first semicolon. */
const textFor = (text: string, tier: Tier): string => (tier === 'all' ? text : (text.split('; ')[0] ?? text));

/** The exit codes of a verb: in the brief help without code 5, whose flag is shown only in the whole help. */
function exitPart(exits: ExitTexts, tier: Tier, width: number): string {
  const items = Object.entries(exits);
  if (tier === 'all') return listed('Exit codes', [...items, ...SIGNAL_EXITS], width);
  const codes = items
    .filter(([code]) => code !== '5')
    .map(([code, text]) => `${code} ${textFor(text, tier)}`);
  return filled(`Exit codes: ${codes.join(', ')}`, width);
}

const SIGNAL_EXITS: readonly Item[] = [
  ['130', 'ended by SIGINT (Ctrl-C)'],
  ['143', 'ended by SIGTERM'],
];

function sourcesText(verb: VerbSpec): string {
  const [first] = flagsOf(verb);
  if (first === undefined) return '';
  const shown = flagsOf(verb).find((name) => name === 'archive-url') ?? first;
  const key = flagsOf(verb).includes('config') ? ' and a key in --config FILE' : '';
  return `Every flag has an environment variable (--${shown}: ${environmentName(shown)})${key}.`;
}

const examplesPart = (examples: readonly string[], width: number): string =>
  ['Examples:', ...examples.flatMap((line) => fitted(`  ${line}`, width))].join('\n');

/** Terms with their texts in a second column, or below the term if a text does not fit there. `all`: the terms that share the column. */
function listed(title: string, items: readonly Item[], width: number, all?: readonly string[]): string {
  const column = Math.max(...(all ?? items.map(([term]) => term)).map((term) => term.length)) + 4;
  const lines = items.flatMap(([term, text]) => {
    const beside = wrap(text, width - column);
    if (width - column < NARROWEST || beside.some((line) => line.length > width - column))
      return [`  ${term}`, ...wrap(text, width - 8).map((line) => `        ${line}`)];
    return beside.map((line, at) => `${(at === 0 ? `  ${term}` : '').padEnd(column)}${line}`);
  });
  return [`${title}:`, ...lines].join('\n');
}

const filled = (text: string, width: number): string => wrap(text, width).join('\n');

export async function man({ verbs, io }: Pick<OfflineCommand, 'verbs' | 'io'>): Promise<ExitCode> {
  await writeText(io, manPage(verbs));
  return 0;
}

/** The page in roff with the macros of man(7). */
export function manPage(verbs: VerbSpecs): string {
  return [
    `.TH CRYPTODL 1 "" "cryptodl ${TOOL_VERSION}" "User Commands"`,
    '.SH NAME',
    `cryptodl \\- ${roff(PURPOSE.replace(/\.$/, ''))}`,
    ...section('DESCRIPTION', helpText(undefined, verbs, 'all')),
    ...Object.values(verbs).flatMap((verb) =>
      section(`CRYPTODL ${verb.name.toUpperCase()}`, helpText(verb, verbs, 'all')),
    ),
    '',
  ].join('\n');
}

/** A text whose lines stay as they are, so that commands can be copied. */
function section(title: string, text: string): string[] {
  return [`.SH ${title}`, '.in 0', '.nf', ...text.trimEnd().split('\n').map(roff), '.fi'];
}

/** Characters that roff replaces or reads as commands, and their names in groff_char(7). */
const NAMED: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '"': '\\(dq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
  '×': '\\(mu',
  '…': '...',
};

/** Text in which roff changes nothing, so that commands can be copied from the page. */
export function roff(text: string): string {
  return text
    .replaceAll(/[\\'"`^~×…-]/g, (character) => NAMED[character] ?? character)
    .replace(/^\./, '\\&.');
}
