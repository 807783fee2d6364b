/** `cryptodl man`: prints the man page cryptodl(1), made from the tables of verbs and flags. */
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { TOOL_VERSION } from '../model/version.js';
import { VERBS } from '../options/flag-spec.js';
import { environmentName, flagsOf } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import { flagItem, PURPOSE, RUN_CODES, sentence, SIGNAL_EXITS, usageOf } from './help.js';
import { VERB_TEXTS } from './verbs.js';
import { writeText } from './write-data.js';

export async function man(io: Io): Promise<ExitCode> {
  await writeText(io, manPage());
  return 0;
}

/** The page in roff with the macros of man(7). */
export function manPage(): string {
  return [
    `.TH CRYPTODL 1 "" "cryptodl ${TOOL_VERSION}" "User Commands"`,
    // No hyphenation and no justified lines, so that flags can be copied.
    '.nh',
    '.ad l',
    '.SH NAME',
    `cryptodl \\- ${roff(PURPOSE.replace(/\.$/, ''))}`,
    '.SH SYNOPSIS',
    ...VERBS.map((verb) => `.B cryptodl ${roff(usageOf(verb))}\n.br`),
    '.SH DESCRIPTION',
    roff(
      'The sections below are the commands with their flags. cryptodl COMMAND --help shows the usual flags.',
    ),
    ...VERBS.flatMap(commandPart),
    '.SH EXIT STATUS',
    ...[...Object.entries(RUN_CODES), ...SIGNAL_EXITS].flatMap(([code, text]) => item(code, text)),
    '.SH ENVIRONMENT',
    roff(
      `Each flag has an environment variable, for example ${environmentName('archive-url')} for --archive-url. Flags override variables, and variables override the keys in --config FILE.`,
    ),
    '',
  ].join('\n');
}

function commandPart(verb: Verb): string[] {
  const { doc, examples } = VERB_TEXTS[verb];
  return [
    `.SH CRYPTODL ${verb.toUpperCase()}`,
    roff(sentence(doc)),
    ...flagsOf(verb).flatMap((name) => item(...flagItem(name, verb, 'all'))),
    '.PP',
    'Examples:',
    '.PP',
    '.nf',
    ...examples.map((line) => roff(`    ${line}`)),
    '.fi',
  ];
}

function item(term: string, text: string): string[] {
  return ['.TP', `.B ${roff(term.trim())}`, roff(text)];
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
