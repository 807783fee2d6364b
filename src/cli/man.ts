/** `cryptodl man`: prints the man page cryptodl(1), which has the texts of `--help-all`. */
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { TOOL_VERSION } from '../model/version.js';
import { VERBS } from '../options/flag-spec.js';
import { helpText, PURPOSE } from './help.js';
import { writeText } from './write-data.js';

export async function man(io: Io): Promise<ExitCode> {
  await writeText(io, manPage());
  return 0;
}

/** The page in roff with the macros of man(7). */
export function manPage(): string {
  return [
    `.TH CRYPTODL 1 "" "cryptodl ${TOOL_VERSION}" "User Commands"`,
    '.SH NAME',
    `cryptodl \\- ${roff(PURPOSE.replace(/\.$/, ''))}`,
    ...section('DESCRIPTION', helpText(undefined, 'all')),
    ...VERBS.flatMap((verb) => section(`CRYPTODL ${verb.toUpperCase()}`, helpText(verb, 'all'))),
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
