/** `cryptodl completion SHELL`: prints a completion script made from the flag table. Pressing TAB starts no program. */
import { didYouMean, nearest } from '../text/did-you-mean.js';
import { usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { VERBS } from '../options/flag-spec.js';
import { choicesOf, docOf, FLAG_NAMES, flagSpec, flagsOf, isSwitch } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import { SHELLS, VERB_TEXTS } from './verbs.js';
import { writeText } from './write-data.js';

/** Throws a usage error for a missing or unknown shell. */
export async function completion(shell: string | undefined, io: Io): Promise<ExitCode> {
  const name = SHELLS.find((candidate) => candidate === shell);
  if (name === undefined) throw refuseShell(shell);
  await writeText(io, { bash: bashScript, zsh: zshScript, fish: fishScript }[name]());
  return 0;
}

function refuseShell(shell: string | undefined): Error {
  const message =
    shell === undefined ? 'completion needs the name of a shell' : `completion: no script for "${shell}"`;
  const hint = (shell === undefined ? undefined : didYouMean(shell, SHELLS)) ?? SHELLS.join(', ');
  const near = shell === undefined ? undefined : nearest(shell, SHELLS);
  const command = shell === undefined ? 'bash' : near;
  return usage(message, hint, command === undefined ? undefined : { command: ['completion', command] });
}

/** The completions after a verb or a flag: words, or names of files or folders. */
interface Values {
  readonly words: readonly string[];
  readonly files?: 'file' | 'folder';
  /** Whether a value is a list of words, separated by commas. */
  readonly list?: boolean;
}

/** Without a verb: the values for the verbs that `choicesOf` does not name. */
function valuesOf(name: FlagName, verb: Verb | undefined): Values {
  const { value, list } = flagSpec(name);
  if (value === 'FILE') return { words: [], files: 'file' };
  if (value === 'DIR') return { words: [], files: 'folder' };
  return {
    words: (verb === undefined ? flagSpec(name).choices : choicesOf(name, verb)) ?? [],
    list: list === 'comma',
  };
}

function operandsOf(verb: Verb): Values {
  const { choices, operand } = VERB_TEXTS[verb];
  if (choices !== undefined) return { words: choices };
  if (operand === '[report]' || operand === '<file>') return { words: [], files: 'file' };
  if (operand === '<directory>' || operand === '<lake...>') return { words: [], files: 'folder' };
  return { words: operand === '[dataset]' ? (flagSpec('dataset').choices ?? []) : [] };
}

function flagWords(verb: Verb): string[] {
  return ['--help', '--help-all', ...flagsOf(verb).flatMap(flagForms)];
}

function bashValues({ words, files, list }: Values): string {
  if (files !== undefined) return `_cryptodl_files ${files === 'file' ? 'default' : 'dirnames'}`;
  if (words.length === 0) return ':';
  return `${list === true ? '_cryptodl_list' : '_cryptodl_words'} "${words.join(' ')}"`;
}

/** `--days` and `-d` */
function flagForms(name: FlagName): string[] {
  const { short } = flagSpec(name);
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

/** The arms of `case` for a verb and a flag. Flags with the same values share an arm. Arms for a single verb come first. */
function bashFlagArms(): string[] {
  const arms = new Map<string, string[]>();
  const add = (name: FlagName, verb: Verb | undefined): void => {
    const act = bashValues(valuesOf(name, verb));
    const forms = flagForms(name).map((flag) => `${verb ?? '*'}\\ ${flag}`);
    arms.set(act, [...(arms.get(act) ?? []), ...forms]);
  };
  const valued = FLAG_NAMES.filter((candidate) => !isSwitch(candidate));
  for (const name of valued)
    for (const verb of VERBS.filter((each) => flagSpec(name).choicesOf?.[each] !== undefined))
      add(name, verb);
  for (const name of valued) add(name, undefined);
  return [...arms].map(([act, forms]) => `    ${forms.join('|')}) ${act}; return ;;`);
}

function bashVerbArm(verb: Verb): string {
  const operands = operandsOf(verb);
  const words = `_cryptodl_words "${[...operands.words, ...flagWords(verb)].join(' ')}"`;
  // If the operand is a path, paths are completed, and flags only after a dash.
  const files = operands.files === undefined ? '' : `[[ $cur != -* ]] && ${bashValues(operands)} || `;
  return `    ${verb}) ${files}${words} ;;`;
}

function bashScript(): string {
  return `# bash completion for cryptodl; made by: cryptodl completion bash
_cryptodl_words() {
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}
_cryptodl_list() {
  local before=""
  [[ $cur == *,* ]] && before="\${cur%,*},"
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "\${cur##*,}"))
}
_cryptodl_files() {
  local IFS=$'\\n'
  # The bash of macOS has no compopt.
  compopt -o "$1" 2> /dev/null || COMPREPLY=($(compgen -o "$1" -- "$cur"))
}
_cryptodl() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  # --flag=value comes as three words.
  if [[ $cur == = ]]; then
    cur=""
  elif [[ $previous == = ]]; then
    previous="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "\${COMP_WORDS[1]} $previous" in
${bashFlagArms().join('\n')}
  esac
  case "\${COMP_WORDS[1]}" in
${VERBS.map(bashVerbArm).join('\n')}
    *) [[ $COMP_CWORD == 1 ]] && _cryptodl_words "${VERBS.join(' ')} --help --help-all --version" ;;
  esac
}
complete -F _cryptodl cryptodl
`;
}

/** Escapes a text for use within single quotes of zsh, and the punctuation of _describe and _arguments. */
function zshText(text: string): string {
  return text.replaceAll(/[[\]:\\]/g, (character) => `\\${character}`).replaceAll("'", String.raw`'\''`);
}

function zshValues({ words, files, list }: Values): string {
  if (files !== undefined) return files === 'file' ? '_files' : '_files -/';
  if (words.length === 0) return ' ';
  return list === true ? `_values -s , value ${words.join(' ')}` : `(${words.join(' ')})`;
}

function zshVerbArm(verb: Verb): string {
  const flags = flagsOf(verb).map((name) => {
    const { value, list } = flagSpec(name);
    const argument = value === undefined ? '' : `:${value}:${zshValues(valuesOf(name, verb))}`;
    const text = `[${zshText(docOf(name, verb))}]${argument}`;
    const [long = '', short] = flagForms(name);
    if (short === undefined) return `'${list === undefined ? '' : '*'}${long}${text}'`;
    const forms = `{${short},${long}}'${text}'`;
    return list === undefined ? `'(${short} ${long})'${forms}` : `'*'${forms}`;
  });
  const operand =
    VERB_TEXTS[verb].operand === undefined ? [] : [`'1:operand:${zshValues(operandsOf(verb))}'`];
  const specs = [`'--help[show help]'`, `'--help-all[show all flags]'`, ...flags, ...operand];
  return `    ${verb})
      _arguments \\
        ${specs.join(' \\\n        ')}
      ;;`;
}

function zshScript(): string {
  return `#compdef cryptodl
# zsh completion for cryptodl; made by: cryptodl completion zsh
_cryptodl() {
  local -a verbs
  verbs=(
${VERBS.map((verb) => `    '${verb}:${zshText(VERB_TEXTS[verb].doc)}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command verbs
    _arguments '--help[show help]' '--help-all[show more help]' '--version[show the version]'
    return
  fi
  local verb="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$verb" in
${VERBS.map(zshVerbArm).join('\n')}
  esac
}
if [[ "$funcstack[1]" == _cryptodl ]]; then
  _cryptodl "$@"
else
  compdef _cryptodl cryptodl
fi
`;
}

function fishText(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

function fishValues({ words, files, list }: Values): string {
  if (files !== undefined) return files === 'file' ? ' -F' : ` -a '(__fish_complete_directories)'`;
  if (words.length === 0) return '';
  return ` -a '${list === true ? `(__cryptodl_list ${words.join(' ')})` : words.join(' ')}'`;
}

function fishVerbLines(verb: Verb): string[] {
  const on = `complete -c cryptodl -n '__cryptodl_verb ${verb}'`;
  const operands = fishValues(operandsOf(verb));
  const flags = flagsOf(verb).map((name) => {
    const values = valuesOf(name, verb);
    const follows = isSwitch(name) ? '' : ` ${values.files === 'file' ? '-r' : '-x'}${fishValues(values)}`;
    const { short } = flagSpec(name);
    const letter = short === undefined ? '' : ` -s ${short}`;
    return `${on}${letter} -l ${name}${follows} -d ${fishText(docOf(name, verb))}`;
  });
  return [...(operands === '' ? [] : [`${on}${operands}`]), ...flags];
}

function fishScript(): string {
  const atVerb = `complete -c cryptodl -n '__cryptodl_verb ""'`;
  return `# fish completion for cryptodl; made by: cryptodl completion fish
function __cryptodl_verb
  set -l words (commandline -opc)
  test "$words[2]" = "$argv[1]"
end
function __cryptodl_list
  set -l typed (commandline -ct | string replace -r '^--[^=]*=' '')
  set -l before (string match -r '.*,' -- "$typed")
  printf '%s\\n' "$before"$argv
end
complete -c cryptodl -f
complete -c cryptodl -l help -d 'show help'
complete -c cryptodl -l help-all -d 'show all flags'
${atVerb} -l version -d 'show the version'
${VERBS.map((verb) => `${atVerb} -a ${verb} -d ${fishText(VERB_TEXTS[verb].doc)}`).join('\n')}
${VERBS.flatMap(fishVerbLines).join('\n')}
`;
}
