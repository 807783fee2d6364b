import { VERBS } from '../../src/main.js';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { LISTS } from '../../src/plan/options/periods.js';
import { flagSpec } from '../../src/plan/options/flags.js';
import { flagFor, flagsOf } from '../../src/plan/options/verb-spec.js';
import { MARKETS } from '../../src/exchange/names.js';
import { cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const run = promisify(execFile);

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** Words as readline gives them to a completion function: an equals sign is a word of its own. */
const BASH = `
source "$SCRIPT"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_cryptodl cryptodl "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
for word in "\${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
`;

/** zsh completes in its line editor only: it gets a terminal, the line and the key, and writes down what it offers. */
const ZSHRC = `
autoload -Uz compinit && compinit -u -D
source "$SCRIPT"
compadd() {
  case " \${*%%--*} " in
    *' -O '*|*' -A '*|*' -D '*) builtin compadd "$@"; return ;;
  esac
  local -a hits
  builtin compadd -O hits "$@"
  (( $#hits )) && print -rl -- "$IPREFIX"\${^hits} >> "$RESULT"
  builtin compadd "$@"
}
zle-line-init() {
  BUFFER="$LINE"
  CURSOR=$#BUFFER
  zle complete-word
  print -r -- "line: $BUFFER" >> "$RESULT"
  exit
}
zle -N zle-line-init
`;
const ZSH = 'zmodload zsh/zpty; zpty terminal zsh -i; while zpty -r terminal; do :; done';

const FISH = 'source $SCRIPT; complete -C $LINE';

const scratch = scratchFolder();
const work = join(scratch, 'work');

/** What pressing TAB at the end of the line offers, without what shells add to show what it is. */
async function offered(shell: Shell, line: string): Promise<string[]> {
  const env = {
    PATH: `${join(scratch, 'bin')}:${process.env['PATH'] ?? ''}`,
    HOME: scratch,
    ZDOTDIR: join(scratch, 'zsh'),
    TERM: 'xterm',
    SCRIPT: scriptOf(shell),
    LINE: line,
    RESULT: join(scratch, 'result'),
  };
  const where = { cwd: work, env };
  const said = async (): Promise<string> => {
    if (shell === 'bash') {
      const words = line.split(/ |(=)/).filter((word) => word !== undefined);
      return (await run('bash', ['--norc', '--noprofile', '-c', BASH, 'bash', ...words], where)).stdout;
    }
    if (shell === 'fish') return (await run('fish', ['--no-config', '-c', FISH], where)).stdout;
    await rm(env.RESULT, { force: true });
    await run('zsh', ['-fc', ZSH], where);
    const result = await readFile(env.RESULT, 'utf8');
    expect(result).toMatch(/^line: /m);
    return result.replace(/^line: .*\n/m, '');
  };
  const words = (await said()).split('\n').filter((word) => word !== '');
  return [
    ...new Set(words.map((word) => word.replace(/\t.*/, '').replace(/\/$/, '').replaceAll('\\ ', ' '))),
  ];
}

function scriptOf(shell: Shell): string {
  return join(scratch, `script.${shell}`);
}

beforeAll(async () => {
  for (const folder of ['work/folder', 'work/my lake', 'zsh', 'bin'])
    mkdirSync(join(scratch, folder), { recursive: true });
  for (const file of ['first.yaml', 'my report.jsonl']) writeFileSync(join(work, file), '');
  writeFileSync(join(scratch, 'zsh/.zshrc'), ZSHRC);
  symlinkSync(join(import.meta.dirname, '../../bin/cryptodl.js'), join(scratch, 'bin/cryptodl'));
  for (const shell of SHELLS) {
    const { stdout } = await cryptodlOk(['completion', shell]);
    writeFileSync(scriptOf(shell), stdout);
  }
});

/** One that is not installed is skipped by a name that says how to have it. */
const CANDIDATES = SHELLS.map((shell) => {
  const isThere = spawnSync(shell, ['--version']).status === 0;
  return { shell, isThere, name: isThere ? shell : `${shell} (apt-get install ${shell})` };
});

describe.each(CANDIDATES)('$name', ({ shell, isThere }) => {
  it.skipIf(!isThere)('takes the script without a word', async () => {
    const { stdout, stderr } = await run(shell, ['-n', scriptOf(shell)]);
    expect(stdout + stderr).toBe('');
  });

  it.skipIf(!isThere).each([
    ['', [...Object.keys(VERBS), '--help', '--help-all', '--version']],
    ['vision --symbols list --forc', ['--force']],
    ['vision --config ', ['first.yaml', 'folder', 'my lake', 'my report.jsonl']],
    ['vision --out ', ['folder', 'my lake']],
  ])('offers after "cryptodl %s" the words %j', async (line, words) => {
    expect((await offered(shell, `cryptodl ${line}`)).sort()).toEqual([...words].sort());
  });

  it.skipIf(!isThere)('offers a value behind an equals sign', async () => {
    const [value = ''] = await offered(shell, 'cryptodl list --market=s');
    expect(value.replace('--market=', '')).toBe('spot');
  });
});

describe('__complete', () => {
  const asked = async (line: string): Promise<string[]> => {
    const { stdout } = await cryptodlOk(['__complete', ...line.split(' ')]);
    return stdout
      .split('\n')
      .filter((each) => each !== '')
      .map((each) => each.replace(/\t.*/, ''));
  };

  it('has all flags of each verb and only those', async () => {
    for (const verb of Object.values(VERBS)) {
      const flags = ['--help', '--help-all', ...flagsOf(verb).map((name) => `--${name}`)];
      expect({ name: verb.name, words: await asked(`${verb.name} --`) }).toEqual({
        name: verb.name,
        words: flags,
      });
    }
  });

  it.each([
    ['vi', ['vision']],
    ['vision --market ', [...MARKETS, 'all']],
    ['vision --days ', []],
    ['retry ', [':file']],
    ['completion ', SHELLS],
    ['metrics --dataset ', flagFor('dataset', VERBS.metrics).choices ?? []],
    ['list --interval 1m,1h,1mo', ['1m,1h,1mo']],
    ['vision --interval 1m,', (flagSpec('interval').choices ?? []).map((interval) => `1m,${interval}`)],
    ['vision -m ', flagSpec('market').choices ?? []],
    ['vision --dataset klines,agg', ['klines,aggTrades']],
    ['vision --market=s', ['--market=spot']],
    ['vision --market = s', ['spot']],
    ['vision --market =', flagSpec('market').choices ?? []],
    ['list ', LISTS],
    ['schema ', flagSpec('dataset').choices ?? []],
    ['schema --market um boo', ['bookTicker', 'bookDepth']],
    ['serve ', [':folder']],
    ['none ', []],
  ])('%s', async (line, words) => {
    expect((await asked(line)).sort()).toEqual([...words].sort());
  });

  it('describes verbs and flags as their help does', async () => {
    const { stdout } = await cryptodlOk(['__complete', 'plot', '--html']);
    expect(stdout).toBe('--html\twrite a page with a zoomable chart instead\n');
    expect((await cryptodlOk(['__complete', 'mer'])).stdout).toBe('');
  });
});
