/** `cryptodl completion SHELL` prints a few lines of shell, which call the hidden `cryptodl __complete WORD...` at each TAB. */
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { flagSpec, isSwitch } from '../plan/options/flags.js';
import { flagFor, flagsOf } from '../plan/options/verb-spec.js';
import type { VerbSpec, VerbSpecs } from '../plan/options/verb-spec.js';
import { choice } from '../plan/options/parsers.js';
import type { OfflineCommand } from '../run/verb.js';
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
export async function completion({ operand = '', io }: OfflineCommand): Promise<ExitCode> {
  await writeText(io, SCRIPTS[choice(Object.keys(SCRIPTS))(operand, 'completion')] ?? '');
  return 0;
}

/** Prints what may stand in place of the last word, one per line with a description; `:file` and `:folder` stand for paths. */
export async function complete(words: readonly string[], verbs: VerbSpecs, io: Io): Promise<ExitCode> {
  const lines = candidatesOf(words, Object.values(verbs)).map(({ word, doc }) =>
    doc === undefined ? word : `${word}\t${doc}`,
  );
  await writeText(io, lines.map((line) => `${line}\n`).join(''));
  return 0;
}

interface Candidate {
  readonly word: string;
  readonly doc?: string;
}

function candidatesOf(words: readonly string[], verbs: readonly VerbSpec[]): readonly Candidate[] {
  // bash splits `--flag=value` into three words.
  const before = words.filter((word) => word !== '=');
  const current = words.at(-1) === '=' ? '' : (before.pop() ?? '');
  const [first] = before;
  if (first === undefined) return matching(current, verbCandidates(verbs));
  const verb = verbs.find(({ name }) => name === first);
  if (verb === undefined) return [];
  const [, joined, value = ''] = /^(--[\w-]+=)(.*)$/.exec(current) ?? [];
  const ofFlag =
    joined === undefined
      ? valuesOf(verb, before.at(-1), current)
      : valuesOf(verb, joined.slice(0, -1), value);
  if (joined !== undefined) return ofFlag === undefined ? [] : matching(value, ofFlag, joined);
  if (ofFlag !== undefined) return matching(current, ofFlag);
  const operands = operandsOf(verb);
  // After a dash, and for verbs without operands, flags are offered.
  return matching(current, operands.length > 0 && !current.startsWith('-') ? operands : flagCandidates(verb));
}

/** The candidates that begin with the text, with `start` in front of them, and those for paths. */
function matching(text: string, candidates: readonly Candidate[], start = ''): readonly Candidate[] {
  return candidates.flatMap((candidate) => {
    if (candidate.word.startsWith(':')) return [candidate];
    return candidate.word.startsWith(text) ? [{ ...candidate, word: start + candidate.word }] : [];
  });
}

function verbCandidates(verbs: readonly VerbSpec[]): Candidate[] {
  return [
    ...verbs.map(({ name, doc }) => ({ word: name, doc: firstPart(doc) })),
    { word: '--help', doc: 'show help' },
    { word: '--help-all', doc: 'show more help' },
    { word: '--version', doc: 'show the version' },
  ];
}

function flagCandidates(verb: VerbSpec): Candidate[] {
  return [
    { word: '--help', doc: 'show help' },
    { word: '--help-all', doc: 'show all flags' },
    ...flagsOf(verb).flatMap((name) => {
      const { short } = flagSpec(name);
      const doc = firstPart(flagFor(name, verb).doc);
      return [{ word: `--${name}`, doc }, ...(short === undefined ? [] : [{ word: `-${short}`, doc }])];
    }),
  ];
}

function firstPart(doc: string): string {
  return doc.split(';')[0] ?? doc;
}

/** The values of the flag `typed`; undefined for a switch and for another word. `text`: the begun value, of which the part after the last comma is completed. */
function valuesOf(verb: VerbSpec, typed: string | undefined, text: string): readonly Candidate[] | undefined {
  const name = flagsOf(verb).find(
    (flag) => typed === `--${flag}` || (typed !== undefined && typed === `-${flagSpec(flag).short}`),
  );
  if (name === undefined || isSwitch(name)) return undefined;
  const { value, list } = flagSpec(name);
  if (value === 'FILE') return [{ word: ':file' }];
  if (value === 'DIR') return [{ word: ':folder' }];
  // `klines,agg` → `klines,aggTrades`
  const earlier = list === 'comma' ? text.slice(0, text.lastIndexOf(',') + 1) : '';
  return (flagFor(name, verb).choices ?? []).map((word) => ({ word: earlier + word }));
}

const WORDS_OF_OPERANDS: Readonly<Record<string, readonly string[] | undefined>> = {
  '[report]': [':file'],
  '<file>': [':file'],
  '<directory>': [':folder'],
  '[dataset]': flagSpec('dataset').choices,
};

function operandsOf({ choices, operand = '' }: VerbSpec): readonly Candidate[] {
  const words = choices ?? WORDS_OF_OPERANDS[operand] ?? [];
  return words.map((word) => ({ word }));
}
