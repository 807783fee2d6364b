/** README, docs/ and help say what the program's tables say. */
import { VERBS } from '../../src/main.js';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PassThrough } from 'node:stream';
import { toJsonSchema } from '@valibot/to-json-schema';
import { format, resolveConfig } from 'prettier';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { datasetsDocument, faultsDocument, flagRows, flagsDocument } from '../../scripts/documents.js';
import { parseCommandLine } from '../../src/cli/program.js';
import type { Invocation } from '../../src/plan/options/resolve.js';
import type { Io } from '../../src/model/io.js';
import { environmentName, FLAG_NAMES, flagSpec } from '../../src/plan/options/flags.js';
import { FACTS } from '../../src/exchange/facts.js';
import { describeDataset } from '../../src/exchange/describe.js';
import { loadBinance } from '../../src/exchange/binance/binance.js';
import { MARKETS } from '../../src/exchange/names.js';
import { datasetsOf } from '../../src/exchange/exchange-spec.js';

const exchange = loadBinance();
const descriptions = MARKETS.flatMap((market) =>
  datasetsOf(exchange, market).map((spec) => describeDataset(exchange, market, spec)),
);
const flags = flagRows(FLAG_NAMES, { flagSpec, environmentName, verbs: Object.values(VERBS) });

function file(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}

function read(path: string): string {
  return readFileSync(file(path), 'utf8');
}

async function formatted(text: string): Promise<string> {
  return format(text, { ...(await resolveConfig(file('README.md'))), parser: 'markdown' });
}

/** Parses one command line; the text of --help when that was asked for. */
function parse(argv: readonly string[]): { invocation: Invocation | undefined; said: string } {
  const stdout = new PassThrough();
  const io = { stdout, stderr: new PassThrough() } as unknown as Io;
  const invocation = parseCommandLine(argv, VERBS, io.stdout);
  return { invocation, said: String(stdout.read() ?? '') };
}

/** All files in one process, which loads what they have in common once. */
const ONE_LOADING = ['--no-isolate', '--max-workers=1'];

describe('generated documents (npm run docs writes them)', () => {
  it('docs/datasets.md', async () => {
    expect(read('docs/datasets.md')).toBe(await formatted(datasetsDocument(descriptions)));
  });

  it('docs/flags.md', async () => {
    expect(read('docs/flags.md')).toBe(await formatted(flagsDocument(flags)));
  });

  it.each(Object.entries(FACTS))('the schema of config/%s', (name, schema) => {
    const written: unknown = JSON.parse(read(`config/${name.replace('.json', '.schema.json')}`));
    expect(written).toEqual(toJsonSchema(schema, { typeMode: 'input', errorMode: 'ignore' }));
  });

  it('docs/faults.md', async () => {
    const root = fileURLToPath(file('.'));
    const vitest = fileURLToPath(file('node_modules/vitest/vitest.mjs'));
    const listed = spawnSync(
      process.execPath,
      [vitest, 'list', '--config', 'test/faults/vitest.config.ts', '--json', ...ONE_LOADING],
      { cwd: root, encoding: 'utf8' },
    );
    const tests = JSON.parse(listed.stdout.slice(listed.stdout.indexOf('['))) as { name: string }[];
    const titles = tests.map(({ name }) => name.slice(name.lastIndexOf(' > ') + 3));
    expect(read('docs/faults.md')).toBe(await formatted(faultsDocument(titles)));
  });

  it('show every text as the tables have it, asterisks too', () => {
    const shown = read('docs/flags.md').replaceAll(/\\([\\*_<>`[\]|])/g, '$1');
    for (const { doc } of flags) expect(shown).toContain(doc);
  });
});

/** Documents that are not generated, and whose command lines are those of the program. */
const GUIDES = [
  'README.md',
  ...[
    'audit',
    'automation',
    'bars',
    'commands',
    'data-terms',
    'lake',
    'python',
    'requests',
    'rest',
    'selection',
    'sql',
  ].map((name) => `docs/${name}.md`),
];

/** Command lines as they stand there, without comments, pipes and prompts. */
const commandLines = (guide: string): string[] =>
  guide
    .split('\n')
    .flatMap((line) => line.replace(/^[ $]+/, '').split(/(?: [#|>] ?|\s{2,})(?=(?:[^"]*"[^"]*")*[^"]*$)/))
    .map((line) => line.replace(/^.*npx cryptodl/, 'cryptodl').trim())
    .filter((line) => /^cryptodl [a-z]/.test(line));

describe.each(GUIDES)('%s', (path) => {
  const guide = read(path);

  it('names only flags that exist', () => {
    // Flags of docker are not ours.
    const ours = guide.replaceAll(/^docker .*$/gm, (line) => line.replace(/^.* (?=cryptodl vision)/, ''));
    const named = new Set([...ours.matchAll(/(?<![\w-])--([a-z][a-z0-9-]*)/g)].map((match) => match[1]));
    const known = new Set<string>([...FLAG_NAMES, 'help', 'help-all']);
    const unknown = [...named].filter((name) => !known.has(name ?? ''));
    expect(unknown).toEqual([]);
  });

  it.each([...new Set(commandLines(guide))])('%s is understood', (line) => {
    const words = line.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
    const argv = words.slice(1).map((word) => word.replace(/^['"]|['"]$/g, ''));
    const { invocation, said } = parse(argv.map((word) => word.split('|')[0] ?? word));
    expect(invocation !== undefined || said.includes('Usage:')).toBe(true);
  });
});

/** Flags of other programs: npm, ss, freqtrade and systemctl. */
const FOREIGN_FLAGS = [
  'include',
  'unix',
  'listening',
  'processes',
  'data-format-ohlcv',
  'data-format-trades',
  'user',
];

describe('messages', () => {
  it('name only flags that exist', () => {
    const folder = new URL('../../src/', import.meta.url);
    const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.ts'),
    );
    const named = new Set(
      paths.flatMap((path) =>
        literalsOf(readFileSync(new URL(path, folder), 'utf8')).flatMap((text) =>
          [...text.matchAll(/(?<![\w-])--([a-z][a-z0-9-]*)/g)].map(([, name = '']) => name),
        ),
      ),
    );
    const known = new Set<string>([...FLAG_NAMES, ...FOREIGN_FLAGS, 'help', 'help-all', 'version']);
    expect([...named].filter((name) => !known.has(name))).toEqual([]);
    expect(named.size).toBeGreaterThan(50);
  });
});

/** The texts of string literals and of the parts of templates. */
function literalsOf(source: string): string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      texts.push(node.text);
    node.forEachChild(visit);
  };
  visit(ts.createSourceFile('', source, ts.ScriptTarget.Latest, true));
  return texts;
}

describe('the maps of the house', () => {
  const files = ['src', 'test'].flatMap((folder) =>
    readdirSync(file(folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  );

  it.each(['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/testing.md'])(
    'of %s name only files that exist',
    (map) => {
      const named = [...read(map).matchAll(/`([\w./-]+\.ts)`/g)].map(([, path = '']) => path);
      const missing = named.filter((path) => !files.some((one) => `/${one}`.endsWith(`/${path}`)));
      expect(missing).toEqual([]);
    },
  );
});

describe('README.md', () => {
  const readme = read('README.md');

  it('has command lines', () => {
    expect(commandLines(readme).length).toBeGreaterThan(12);
  });

  it('has at most 170 lines, and how to install it and to work from a clone on the first screen', () => {
    const lines = readme.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(170);
    const screen = lines.slice(0, 24).join('\n');
    expect(screen).toMatch(/^npx cryptodl vision .*\nnpm install -g cryptodl/m);
    expect(screen).toMatch(/^npm ci && npm run demo .*\nnpm ci && npm test/m);
  });
});
