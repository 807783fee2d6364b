/** `cryptodl completion SHELL` prints a few lines of shell, which call the hidden `cryptodl __complete WORD...` at each TAB. */
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { flagSpec, isSwitch } from '../plan/options/flags.js';
import { flagFor, flagsOf, type VerbSpec, type VerbSpecs } from '../plan/options/verb-spec.js';
import { choice } from '../plan/options/parsers.js';
import type { OfflineCommand } from '../run/verb/verb.js';
import { writeText } from '../terminal/write-data.js';

const BASH = `# bash completion for cryptodl; made by: cryptodl completion bash
_cryptodl() {
  local line IFS=$'\\n'
  COMPREPLY=()
  while read -r line; do
    case $line in
      # The bash of macOS has no compopt.
      :file) compopt -o default 2> /dev/null || COMPREPLY=($(compgen -f -- "$2")) ;;
      :folder) compopt -o dirnames 2> /dev/null || COMPREPLY=($(compgen -d -- "$2")) ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <(cryptodl __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
}
complete -F _cryptodl cryptodl
`;

const ZSH = `#compdef cryptodl
# zsh completion for cryptodl; made by: cryptodl completion zsh
_cryptodl() {
  local line
  local -a found
  while IFS= read -r line; do
    case $line in
      :file) compset -P '*='; _files ;;
      :folder) compset -P '*='; _files -/ ;;
      *) found+=("\${\${line//:/\\\\:}/$'\\t'/:}") ;;
    esac
  done < <(cryptodl __complete "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)
  (( $#found )) && _describe value found
}
if [[ "$funcstack[1]" == _cryptodl ]]; then
  _cryptodl "$@"
else
  compdef _cryptodl cryptodl
fi
`;

const FISH = `# fish completion for cryptodl; made by: cryptodl completion fish
function __cryptodl_complete
  set -l current (commandline -ct)
  set -l words (commandline -opc) "$current"
  for line in (cryptodl __complete $words[2..-1] 2> /dev/null)
    switch $line
      case :file
        __fish_complete_path "$current"
      case :folder
        __fish_complete_directories "$current"
      case '*'
        printf '%s\\n' $line
    end
  end
end
complete -c cryptodl -f -a '(__cryptodl_complete)'
`;

const SCRIPTS: Readonly<Record<string, string>> = { bash: BASH, zsh: ZSH, fish: FISH };

/** Throws a usage error for a missing or unknown shell. */
export async function completion({ operand = '', io }: OfflineCommand<never>): Promise<ExitCode> {
  await writeText(io, SCRIPTS[choice(Object.keys(SCRIPTS))(operand, 'completion')] ?? '');
  return 0;
}

/** Prints what may stand in place of the last word, one per line with a description; `:file` and `:folder` stand for paths. */
export async function complete(words: readonly string[], verbs: VerbSpecs, io: Io): Promise<ExitCode> {
  const lines = candidatesOf(words, Object.values(verbs));
  await writeText(io, lines.map((line) => `${line}\n`).join(''));
  return 0;
}

/** Each candidate is a word, with a tab and its description if it has one. */
function candidatesOf(words: readonly string[], verbs: readonly VerbSpec[]): readonly string[] {
  // bash splits `--flag=value` into three words.
  const before = words.filter((word) => word !== '=');
  const current = words.at(-1) === '=' ? '' : (before.pop() ?? '');
  const [first] = before;
  if (first === undefined)
    return matching(current, [
      ...verbs.map(({ name, doc }) => described(name, doc)),
      ...HELP,
      '--version\tshow the version',
    ]);
  const verb = verbs.find(({ name }) => name === first);
  if (verb === undefined) return [];
  const [, joined = '', value = current] = /^(--[\w-]+=)(.*)$/.exec(current) ?? [];
  const typed = joined === '' ? before.at(-1) : joined.slice(0, -1);
  const ofFlag = valuesOf(verb, typed, value);
  if (joined !== '' || ofFlag !== undefined) return matching(value, ofFlag ?? [], joined);
  const operands = verb.choices ?? WORDS_OF_OPERANDS[verb.operand ?? ''] ?? [];
  // After a dash, and for verbs without operands, flags are offered.
  return matching(current, operands.length > 0 && !current.startsWith('-') ? operands : flagsWithDocs(verb));
}

/** The candidates that begin with the text, with `start` in front of them, and those for paths. */
function matching(text: string, candidates: readonly string[], start = ''): readonly string[] {
  return candidates.flatMap((candidate) => {
    if (candidate.startsWith(':')) return [candidate];
    return candidate.startsWith(text) ? [start + candidate] : [];
  });
}

const HELP = ['--help\tshow help', '--help-all\tshow all of the help'];

function flagsWithDocs(verb: VerbSpec): string[] {
  const own = flagsOf(verb).flatMap((name) => {
    const { short } = flagSpec(name);
    const typed = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
    return typed.map((word) => described(word, flagFor(name, verb).doc));
  });
  return [...HELP, ...own];
}

const described = (word: string, doc: string): string => `${word}\t${doc.split(';')[0] ?? ''}`;

/** The values of the flag `typed`; undefined for a switch and for another word. `text`: the begun value, of which the part after the last comma is completed. */
function valuesOf(verb: VerbSpec, typed: string | undefined, text: string): readonly string[] | undefined {
  const name = flagsOf(verb).find(
    (flag) => typed === `--${flag}` || (typed !== undefined && typed === `-${flagSpec(flag).short}`),
  );
  if (name === undefined || isSwitch(name)) return undefined;
  const { value, list } = flagSpec(name);
  if (value === 'FILE') return [':file'];
  if (value === 'DIR') return [':folder'];
  // `klines,agg` → `klines,aggTrades`
  const earlier = list === 'comma' ? text.slice(0, text.lastIndexOf(',') + 1) : '';
  return (flagFor(name, verb).choices ?? []).map((word) => earlier + word);
}

const WORDS_OF_OPERANDS: Readonly<Record<string, readonly string[] | undefined>> = {
  '[report]': [':file'],
  '<file>': [':file'],
  '<directory>': [':folder'],
  '[dataset]': flagSpec('dataset').choices,
};
