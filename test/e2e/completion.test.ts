import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { SHELLS } from '../../src/cli/verbs.js';
import { LISTS } from '../../src/options/words/list-name.js';
import { VERBS } from '../../src/options/flag-spec.js';
import { choicesOf, FLAG_NAMES, flagSpec, flagsOf } from '../../src/options/flags.js';
import type { Verb } from '../../src/options/flag-spec.js';
import { MARKETS } from '../../src/source/names.js';
import { cryptodl, cryptodlOk } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';
import { sizedRows } from '../helpers/tier-size.js';

const run = promisify(execFile);

type Shell = (typeof SHELLS)[number];

/** Words as readline gives them to a completion function: an equals sign is a word of its own. */
const BASH = `
source "$SCRIPT"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_cryptodl
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
    PATH: process.env['PATH'] ?? '',
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
  for (const folder of ['work/folder', 'work/my lake', 'zsh'])
    mkdirSync(join(scratch, folder), { recursive: true });
  for (const file of ['first.yaml', 'my report.jsonl']) writeFileSync(join(work, file), '');
  writeFileSync(join(scratch, 'zsh/.zshrc'), ZSHRC);
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
  const folders = ['folder', 'my lake'];
  const files = ['first.yaml', 'folder', 'my lake', 'my report.jsonl'];

  it('every flag of the table is in the script, under its verbs and no other', async () => {
    const script = await readFile(scriptOf(shell), 'utf8');
    for (const verb of VERBS) {
      const part = partOf(shell, script, verb);
      const named = FLAG_NAMES.filter((name) => part.has(name));
      expect({ verb, named }).toEqual({ verb, named: flagsOf(verb) });
    }
  });

  it.skipIf(!isThere)('takes the script without a word', async () => {
    const { stdout, stderr } = await run(shell, ['-n', scriptOf(shell)]);
    expect(stdout + stderr).toBe('');
  });

  it.skipIf(!isThere)('offers the verbs first, and no flag of theirs', async () => {
    const words = await offered(shell, 'cryptodl ');
    expect(words.filter((word) => !word.startsWith('-')).sort()).toEqual([...VERBS].sort());
    expect(await offered(shell, 'cryptodl vi')).toEqual(['vision']);
    expect((await offered(shell, 'cryptodl --')).sort()).toEqual(['--help', '--help-all', '--version']);
  });

  it.skipIf(!isThere)('offers all flags of a verb and only those', async () => {
    for (const verb of sizedRows(VERBS, 4)) {
      const flags = ['--help', '--help-all', ...flagsOf(verb).map((name) => `--${name}`)];
      const words = await offered(shell, `cryptodl ${verb} --`);
      expect({ verb, words: words.sort() }).toEqual({ verb, words: flags.sort() });
    }
    expect(await offered(shell, 'cryptodl vision --mar')).toEqual(['--market']);
    expect(await offered(shell, 'cryptodl serve --mar')).toEqual([]);
    // A word that is also a verb's name is no verb elsewhere.
    expect(await offered(shell, 'cryptodl vision --symbols list --lo')).not.toContain('--long');
  });

  it.skipIf(!isThere)('offers the values of a flag', async () => {
    expect((await offered(shell, 'cryptodl vision --market ')).sort()).toEqual([...MARKETS, 'all'].sort());
    expect((await offered(shell, 'cryptodl vision --force --format ')).sort()).toEqual([
      'csv',
      'parquet',
      'zip',
    ]);
    expect(await offered(shell, 'cryptodl vision --days 7 --format p')).toEqual(['parquet']);
    expect(await offered(shell, 'cryptodl list --dataset agg')).toEqual(['aggTrades']);
    const ofMetrics = choicesOf('dataset', 'metrics') ?? [];
    expect(ofMetrics).not.toContain('aggTrades');
    expect((await offered(shell, 'cryptodl metrics --dataset ')).sort()).toEqual([...ofMetrics].sort());
  });

  it.skipIf(!isThere)('offers nothing where only the user knows', async () => {
    for (const flag of ['days', 'symbols', 'from', 'archive-url'])
      expect(await offered(shell, `cryptodl vision --${flag} `)).toEqual([]);
  });

  it.skipIf(!isThere)('goes on behind the commas of a list', async () => {
    expect(await offered(shell, 'cryptodl vision --dataset klines,agg')).toEqual(['klines,aggTrades']);
    const intervals = await offered(shell, 'cryptodl vision --interval 1m,');
    const known = (flagSpec('interval').choices ?? []).map((interval) => `1m,${interval}`);
    expect(intervals).toEqual(expect.arrayContaining(known.filter((interval) => interval !== '1m,1m')));
    expect(intervals.filter((interval) => !known.includes(interval))).toEqual([]);
    expect(await offered(shell, 'cryptodl list --interval 1m,1h,1mo')).toEqual(['1m,1h,1mo']);
  });

  it.skipIf(!isThere)('offers files where a file is wanted, and folders where a folder is', async () => {
    expect((await offered(shell, 'cryptodl vision --config ')).sort()).toEqual(files);
    expect(await offered(shell, 'cryptodl vision --config fi')).toEqual(['first.yaml']);
    expect((await offered(shell, 'cryptodl vision --out ')).sort()).toEqual(folders);
    expect(await offered(shell, 'cryptodl retry --temp-dir fo')).toEqual(['folder']);
  });

  it.skipIf(!isThere)('offers the operands of a verb', async () => {
    const operands = async (line: string): Promise<string[]> =>
      (await offered(shell, line)).filter((word) => !word.startsWith('-')).sort();
    expect(await operands('cryptodl list ')).toEqual([...LISTS].sort());
    expect(await operands('cryptodl schema ')).toEqual([...(flagSpec('dataset').choices ?? [])].sort());
    expect(await operands('cryptodl schema --market um boo')).toEqual(['bookDepth', 'bookTicker']);
    expect(await operands('cryptodl completion ')).toEqual([...SHELLS].sort());
    expect(await operands('cryptodl retry ')).toEqual(files);
    expect(await operands('cryptodl serve ')).toEqual(folders);
    expect(await operands('cryptodl vision ')).toEqual([]);
  });

  it.skipIf(!isThere)('offers nothing wrong behind an equals sign', async () => {
    const values = (await offered(shell, 'cryptodl list --market=s')).map((word) =>
      word.replace('--market=', ''),
    );
    expect([[], ['spot']]).toContainEqual(values);
  });
});

it('the script for bash offers the values of a short flag too', async () => {
  expect((await offered('bash', 'cryptodl vision -m ')).sort()).toEqual([...MARKETS, 'all'].sort());
});

it('the script for fish has the short flags beside the long ones', async () => {
  const { stdout } = await cryptodlOk(['completion', 'fish']);
  expect(stdout).toMatch(/__cryptodl_verb vision' -s m -l market /);
  expect(stdout).toMatch(/__cryptodl_verb vision' -l force /);
});

it.each(['zsh', 'fish'])('the script for %s describes a flag as the help of its verb does', async (shell) => {
  const { stdout } = await cryptodlOk(['completion', shell]);
  const own = [...new Set(Object.values(flagSpec('json').docOf ?? {}))];
  expect(own.length).toBeGreaterThan(1);
  for (const text of own) expect(stdout.replaceAll('\\', '')).toContain(text);
});

it('an unknown shell is answered with a line that works', async () => {
  const { code, stderr } = await cryptodl(['completion', 'fisch']);
  expect(code).toBe(2);
  const [, , line = ''] = stderr.trimEnd().split('\n');
  expect(line.trim()).toBe('cryptodl completion fish');
});

/** Names of the flags that a script has for a verb. */
function partOf(shell: Shell, script: string, verb: Verb): Set<string> {
  const pattern = {
    bash: new RegExp(`^ {4}${verb}\\) .*$`, 'gm'),
    zsh: new RegExp(`^ {4}${verb}\\)$[\\s\\S]*?^ +;;$`, 'gm'),
    fish: new RegExp(`^complete .*__cryptodl_verb ${verb}'(?: -s .)? -l .*$`, 'gm'),
  }[shell];
  const flag = {
    bash: /--([a-z0-9-]+)/g,
    zsh: /[',]\*?--([a-z0-9-]+)(?:\[|\}')/g,
    fish: / -l ([a-z0-9-]+)/g,
  }[shell];
  const part = (script.match(pattern) ?? []).join('\n');
  return new Set([...part.matchAll(flag)].map(([, name]) => name ?? ''));
}
