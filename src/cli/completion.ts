/** `cryptodl completion SHELL`: a script made from the flag table, so that pressing TAB starts no program. */
import { didYouMean, nearest } from '../did-you-mean.js';
import { usage } from '../errors.js';
import type { ExitCode } from '../exit-code.js';
import type { Io } from '../io.js';
import { flagSpec, flagsOf, VERBS } from '../options/flags.js';
import type { FlagName, Verb } from '../options/flags.js';
import { loadVenue, MARKETS } from '../venue/venue.js';
import { SHELLS, VERB_TEXTS } from './verbs.js';
import { writeData } from './write-data.js';

export async function completion(shell: string | undefined, io: Io): Promise<ExitCode> {
  const name = SHELLS.find((candidate) => candidate === shell);
  if (name === undefined) throw refuseShell(shell);
  await writeData(io, { bash: bashScript, zsh: zshScript, fish: fishScript }[name]());
  return 0;
}

function refuseShell(shell: string | undefined): Error {
  const message =
    shell === undefined ? 'completion for which shell?' : `completion: no script for "${shell}"`;
  const hint = (shell === undefined ? undefined : didYouMean(shell, SHELLS)) ?? SHELLS.join(', ');
  const near = shell === undefined ? undefined : nearest(shell, SHELLS);
  return usage(message, hint, { command: ['completion', near ?? 'bash'] });
}

/** What may follow a verb or a flag: words, or names of files. */
interface Values {
  readonly words: readonly string[];
  readonly files: 'file' | 'folder' | undefined;
}

function valuesOf(name: FlagName): Values {
  const { choices, value } = flagSpec(name);
  const files = value === 'FILE' ? 'file' : value === 'DIR' ? 'folder' : undefined;
  return { words: choices ?? [], files };
}

function operandsOf(verb: Verb): Values {
  const { choices, operand } = VERB_TEXTS[verb];
  if (choices !== undefined) return { words: choices, files: undefined };
  if (operand === '<report>') return { words: [], files: 'file' };
  if (operand === '<directory>') return { words: [], files: 'folder' };
  if (operand !== '[dataset]') return { words: [], files: undefined };
  const venue = loadVenue();
  const names = MARKETS.flatMap((market) => Object.keys(venue.markets[market].datasets));
  return { words: [...new Set(names)], files: undefined };
}

function isList(name: FlagName): boolean {
  return flagSpec(name).list === 'comma';
}

function allFlags(): FlagName[] {
  return [...new Set(VERBS.flatMap((verb) => flagsOf(verb)))];
}

function flagWords(verb: Verb): string[] {
  return ['--help', ...flagsOf(verb).map((name) => `--${name}`)];
}

/** Flags by what may follow them; the shells' case statements want one arm for each. */
function arms(): { flags: FlagName[]; values: Values; list: boolean }[] {
  return allFlags()
    .filter((name) => flagSpec(name).value !== undefined)
    .map((name) => ({ flags: [name], values: valuesOf(name), list: isList(name) }));
}

function bashScript(): string {
  const values = arms().map(({ flags, values: { words, files }, list }) => {
    const pattern = flags.map((name) => `--${name}`).join('|');
    if (files !== undefined) return `    ${pattern}) compopt -o default; COMPREPLY=(); return ;;`;
    const fill = list ? '_cryptodl_list' : '_cryptodl_words';
    return `    ${pattern}) ${fill} "${words.join(' ')}"; return ;;`;
  });
  const verbs = VERBS.map((verb) => {
    const { words, files } = operandsOf(verb);
    const other = files === undefined ? '' : ' compopt -o default;';
    return `    ${verb})${other} _cryptodl_words "${[...words, ...flagWords(verb)].join(' ')}" ;;`;
  });
  return `# bash completion for cryptodl; made by: cryptodl completion bash
_cryptodl_words() {
  COMPREPLY=($(compgen -W "$1" -- "$cur"))
}
_cryptodl_list() {
  local before=""
  [[ $cur == *,* ]] && before="\${cur%,*},"
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "\${cur##*,}"))
}
_cryptodl() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  case "$previous" in
${values.join('\n')}
  esac
  case "\${COMP_WORDS[1]}" in
${verbs.join('\n')}
    *) [[ $COMP_CWORD == 1 ]] && _cryptodl_words "${VERBS.join(' ')} --help --version" ;;
  esac
}
complete -F _cryptodl cryptodl
`;
}

/** Inside single quotes of an _arguments specification. */
function zshText(text: string): string {
  return text.replaceAll("'", "'\\''").replaceAll(/[[\]:\\]/g, (character) => `\\${character}`);
}

function zshAction({ words, files }: Values, list: boolean): string {
  if (files !== undefined) return files === 'file' ? '_files' : '_files -/';
  if (words.length === 0) return ' ';
  return list ? `_values -s , value ${words.join(' ')}` : `(${words.join(' ')})`;
}

function zshScript(): string {
  const verbs = VERBS.map((verb) => {
    const flags = flagsOf(verb).map((name) => {
      const { doc, value, list } = flagSpec(name);
      const argument = value === undefined ? '' : `:${value}:${zshAction(valuesOf(name), isList(name))}`;
      return `        '${list === undefined ? '' : '*'}--${name}[${zshText(doc)}]${argument}'`;
    });
    const operands = operandsOf(verb);
    const operand =
      VERB_TEXTS[verb].operand === undefined ? [] : [`        '1:operand:${zshAction(operands, false)}'`];
    return `    ${verb})
      _arguments \\
${["        '--help[show help]'", ...flags, ...operand].join(' \\\n')}
      ;;`;
  });
  return `#compdef cryptodl
# zsh completion for cryptodl; made by: cryptodl completion zsh
_cryptodl() {
  local -a verbs
  verbs=(
${VERBS.map((verb) => `    '${verb}:${zshText(VERB_TEXTS[verb].doc)}'`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command verbs
    return
  fi
  local verb="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$verb" in
${verbs.join('\n')}
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

function fishScript(): string {
  const lines = VERBS.flatMap((verb) => {
    const on = `complete -c cryptodl -n '__fish_seen_subcommand_from ${verb}'`;
    const { words, files } = operandsOf(verb);
    const flags = flagsOf(verb).map((name) => {
      const { doc, value } = flagSpec(name);
      const { words: choices, files: names } = valuesOf(name);
      const follows =
        value === undefined
          ? ''
          : names === undefined
            ? choices.length === 0
              ? ' -x'
              : ` -x -a ${fishText(choices.join(' '))}`
            : ' -r -F';
      return `${on} -l ${name}${follows} -d ${fishText(doc)}`;
    });
    return [
      `complete -c cryptodl -n '__fish_use_subcommand' -a ${verb} -d ${fishText(VERB_TEXTS[verb].doc)}`,
      ...(words.length === 0 ? [] : [`${on} -a ${fishText(words.join(' '))}`]),
      ...(files === undefined ? [] : [`${on} -F`]),
      ...flags,
    ];
  });
  return `# fish completion for cryptodl; made by: cryptodl completion fish
complete -c cryptodl -f
${lines.join('\n')}
`;
}
