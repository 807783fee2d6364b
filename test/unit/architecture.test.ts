/** Rooms of src import only downward, and the rules for every file. Type-only and lazy imports count like all others. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));

/**
 * The number of each room. A file imports only from rooms with lower numbers, and from its own room. Above the rooms stand the files of
 * `src` itself, and the folder of the library. A verb imports nothing of another verb: what they share lies below.
 */
const NUMBERS: Readonly<Record<string, number>> = {
  model: 0,
  text: 0,
  files: 0,
  terminal: 1,
  http: 2,
  exchange: 3,
  convert: 4,
  lake: 5,
  plan: 6,
  run: 7,
  verbs: 8,
  cli: 9,
  library: 10,
};
const TOP = 10;
/** The rooms of number 0, lowest first. */
const LOWEST = ['model', 'text', 'files'];

/**
 * The rooms that read manifests themselves. `catalogue` does it for all verbs that only read. The others write lines, and compare what they
 * write with the lines before: a plan, the rows of an object, months that are made again, and repairs.
 */
const READ_MANIFESTS = [
  'lake/catalogue',
  'lake/write',
  'plan',
  'run/partitions',
  'run/session',
  'run/verify',
  'verbs/bars',
];
const MANIFEST_MODULES = /\/(?:(?:inspect-|read-)?manifest|manifests|held-objects)\.js$/;

/** The owner files of each third-party package. The second name of a row needs its reason. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  // The connections, the package and its errors, and the values of streamed rows.
  '@duckdb/node-api': ['convert/duckdb.ts', 'convert/load-duckdb.ts', 'convert/stream-rows.ts'],
  '@aws-sdk/client-s3': ['lake/s3/sdk.ts'],
  '@aws-sdk/lib-storage': ['lake/s3/sdk.ts'],
  bullmq: ['verbs/queue/bullmq.ts'],
  'cli-progress': ['run/report/run-progress.ts'],
  commander: ['cli/program.ts'],
  'fastest-levenshtein': ['text/did-you-mean.ts'],
  hyparquet: ['convert/parquet-footer.ts'],
  ioredis: ['http/redis/connection.ts'],
  // The places of one run, and those for large statements of one engine.
  'p-queue': ['convert/duckdb.ts', 'run/pacing/places.ts'],
  picomatch: ['plan/select/match-symbols.ts'],
  pino: ['run/report/log.ts'],
  'prom-client': ['run/monitor/prometheus.ts'],
  saxes: ['exchange/s3-listing.ts'],
  // limited-clients.ts makes the clients of the pools; transport.ts names the type of the response it reads, nothing else.
  undici: ['http/transport/limited-clients.ts', 'http/transport/pool.ts', 'http/transport/transport.ts'],
  // Six schemas of six formats, each beside its reader.
  valibot: [
    'exchange/facts.ts',
    'lake/mirror/staged-zips.ts',
    'lake/order.ts',
    'model/settings-schema.ts',
    'run/failures/read-failure-report.ts',
    'run/monitor/run-record.ts',
  ],
  yaml: ['plan/options/config-file.ts'],
  yauzl: ['exchange/zip/zip-entry.ts'],
  yazl: ['verbs/export/write-file.ts'],
};

/**
 * The most lines of each room. A number is right while it is at most 100 above the lines of its room; a failure shows the number to enter
 * as expected. A number above the earlier one needs its reason in the message of the commit.
 */
const LINES: Readonly<Record<string, number>> = {
  cli: 600,
  convert: 2950,
  exchange: 1750,
  'exchange/binance': 750,
  'exchange/zip': 400,
  files: 1050,
  http: 600,
  'http/proxies': 250,
  'http/redis': 200,
  'http/retry': 750,
  'http/throttle': 1900,
  'http/transport': 1600,
  lake: 2950,
  'lake/catalogue': 2450,
  'lake/mirror': 1200,
  'lake/s3': 950,
  'lake/write': 1450,
  library: 600,
  main: 150,
  model: 1900,
  plan: 2500,
  'plan/options': 2250,
  'plan/select': 1700,
  process: 100,
  run: 950,
  'run/failures': 550,
  'run/monitor': 1550,
  'run/objects': 600,
  'run/pacing': 800,
  'run/partitions': 750,
  'run/queue': 350,
  'run/report': 1800,
  'run/session': 800,
  'run/verb': 850,
  'run/verdict': 500,
  'run/verify': 900,
  terminal: 200,
  text: 450,
  'verbs/audit': 1050,
  'verbs/bars': 950,
  'verbs/check': 150,
  'verbs/coverage': 500,
  'verbs/doctor': 700,
  'verbs/export': 1600,
  'verbs/list': 400,
  'verbs/metrics': 100,
  'verbs/plot': 950,
  'verbs/queue': 2150,
  'verbs/remove': 350,
  'verbs/repair': 50,
  'verbs/report': 350,
  'verbs/retry': 100,
  'verbs/run': 200,
  'verbs/runs': 150,
  'verbs/schedule': 300,
  'verbs/schema': 100,
  'verbs/serve': 600,
  'verbs/sql': 100,
  'verbs/universe': 600,
  'verbs/verify': 100,
  'verbs/vision': 100,
};
/** The types of the nouns of ARCHITECTURE.md, as declarations write them. A part of the type and its name as text are allowed too. */
const NOUNS: Readonly<Record<string, RegExp>> = {
  exchange: /^(?:\w*Exchange\w*|Pick<Exchange\w*, .*>|string|\{ readonly name: string \})(?: \| undefined)?$/,
  market: /^(?:Market|Series\['market'\]|string)$/,
  dataset: /^(?:ChosenDataset|string)$/,
  symbol: /^string$/,
  interval: /^string(?: \| undefined)?$/,
  task: /^Task$/,
  session: /^(?:\w*Session(?:<.*>)?|Pick<\w*Session, .*>)$/,
  run: /Run|^Diagnosed$|^\(plans: /,
  engine: /^(?:\w*Engine(?: \| undefined)?|string|\{ readonly bytesWritten: number \})$/,
  duckdb: /^DuckDb(?: \| undefined)?$/,
  program: /^(?:ExportProgram|readonly string\[\])$/,
  order: /^(?:Order|OrderTerms|\{ readonly firstDay: .*\})$/,
};
/** The only name of a value of this type. */
const NOUN_OF: Readonly<Record<string, string>> = {
  Exchange: 'exchange',
  ExchangeSpec: 'exchange',
  DuckDb: 'duckdb',
};
const LINES_STEP = 50;
const LINES_SLACK = 100;

const LONGEST_FUNCTION = 50;

/** What `import 'cryptodl'` gives. */
const PACKAGE = 'library.ts';
const NO_FOLDERS = ['common', 'helper', 'helpers', 'lib', 'misc', 'shared', 'util', 'utils'];
/** The library reads it for buckets only, because the credentials of AWS stand there. */
const READS_ENVIRONMENT = ['library/lake-in-bucket.ts', 'process.ts'];
/** write-data.ts is the way of data to stdout, and program.ts prints help. Other text goes through `printLines`. */
const WRITES_TO_STREAMS = ['cli/program.ts', 'terminal/write-data.ts'];

interface SourceFile {
  /** Relative to src, with slashes. */
  readonly path: string;
  /** Begins with a comment of its own, not with that of a declaration. */
  readonly hasHeader: boolean;
  /** Specifiers as written. */
  readonly imports: readonly string[];
  readonly hasDefaultExport: boolean;
  readonly reexports: boolean;
  readonly readsEnvironment: boolean;
  readonly lines: number;
  readonly longFunctions: readonly string[];
  /** Parameters, fields and variables with a written type. */
  readonly typedNames: readonly (readonly [name: string, type: string])[];
}

const files = sourceFiles(SRC).map(scan);

describe('src', () => {
  it('imports only from lower rooms, and no verb imports another verb', () => {
    const wrong = files.flatMap((file) =>
      filesImported(file)
        .filter((target) => !mayImport(file.path, target))
        .map((target) => `${file.path} → ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('reads manifests only in the catalogue and in the folders that write a lake', () => {
    const readers = files.filter(({ imports }) => imports.some((path) => MANIFEST_MODULES.test(path)));
    const folders = new Set(readers.map(({ path }) => unitOf(path)));
    folders.delete('lake');
    expect([...folders].sort()).toEqual(READ_MANIFESTS);
  });

  it('has a number for each of its folders, and no other number', () => {
    expect(Object.keys(NUMBERS).sort()).toEqual(
      [...new Set(files.flatMap(({ path }) => roomOf(path) ?? []))].sort(),
    );
  });

  it('has its unit tests in folders with the names of its rooms', () => {
    const folders = readdirSync(join(SRC, '../test/unit'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(folders.map(({ name }) => name).filter((name) => !(name in NUMBERS))).toEqual([]);
  });

  it('has no more lines in a folder than the table allows, and at most 100 fewer', () => {
    const lines: Record<string, number> = {};
    for (const file of files) lines[unitOf(file.path)] = (lines[unitOf(file.path)] ?? 0) + file.lines;
    const right = Object.entries(lines).map(([room, count]) => {
      const most = LINES[room] ?? 0;
      const isRight = count <= most && most <= count + LINES_SLACK;
      return [room, isRight ? most : Math.ceil(count / LINES_STEP) * LINES_STEP];
    });
    expect(LINES).toEqual(Object.fromEntries(right));
  });

  it('uses each noun only for values of its types, and no other noun for an exchange or a connection of DuckDB', () => {
    const wrong = files.flatMap(({ path, typedNames }) =>
      typedNames
        .filter(([name, type]) => NOUNS[name]?.test(type) === false || (NOUN_OF[type] ?? name) !== name)
        .map(([name, type]) => `${path} ${name}: ${type}`),
    );
    expect(wrong).toEqual([]);
  });

  it('has no function of more than 50 lines', () => {
    expect(
      files.flatMap(({ path, longFunctions }) => longFunctions.map((name) => `${path} ${name}`)),
    ).toEqual([]);
  });

  it('has no cycles of files', () => {
    const imports = new Map(files.map((file) => [file.path, filesImported(file)]));
    expect(cycles(imports)).toEqual([]);
  });

  it('has no cycles of folders', () => {
    const imports = new Map<string, string[]>();
    for (const file of files) {
      const own = unitOf(file.path);
      const others = filesImported(file).map(unitOf);
      imports.set(own, [...(imports.get(own) ?? []), ...others.filter((other) => other !== own)]);
    }
    expect(cycles(imports)).toEqual([]);
  });

  it('imports each third-party package only in its owner files', () => {
    const found: Record<string, string[]> = {};
    for (const { path, imports } of files) {
      for (const name of new Set(imports.filter(isThirdParty).map(packageOf)))
        (found[name] ??= []).push(path);
    }
    expect(found).toEqual(OWNERS);
  });

  it('has no default exports', () => {
    expect(pathsWhere((file) => file.hasDefaultExport)).toEqual([]);
  });

  it('exports a name only from the file that declares it, and from the file of the package', () => {
    expect(
      pathsWhere((file) => file.path !== PACKAGE && (file.reexports || file.path.endsWith('index.ts'))),
    ).toEqual([]);
  });

  it('has a comment at the head of each file', () => {
    expect(pathsWhere((file) => !file.hasHeader)).toEqual([]);
  });

  it('has no folder with a name like utils or helpers', () => {
    const folders = files.flatMap(({ path }) => path.split('/').slice(0, -1));
    expect(folders.filter((name) => NO_FOLDERS.includes(name))).toEqual([]);
  });

  it('reads the environment only in process.ts and, for buckets, in the library', () => {
    expect(pathsWhere((file) => file.readsEnvironment)).toEqual(READS_ENVIRONMENT);
  });

  it('writes to stdout and stderr only in two files, which escape control characters and mask passwords', () => {
    const writes = /\bstd(?:out|err)\.write\(/;
    const writing = pathsWhere(({ path }) => writes.test(readFileSync(join(SRC, path), 'utf8')));
    expect(writing).toEqual(WRITES_TO_STREAMS);
  });

  it('has each of its folders in ARCHITECTURE.md, which has at most 120 lines', () => {
    const map = readFileSync(join(SRC, '../ARCHITECTURE.md'), 'utf8');
    const folders = new Set(files.flatMap(({ path }) => folderOf(path) ?? []));
    expect([...folders].filter((folder) => !map.includes(`src/${folder}/`))).toEqual([]);
    expect(map.trimEnd().split('\n').length).toBeLessThanOrEqual(120);
  });
});

function pathsWhere(is: (file: SourceFile) => boolean): string[] {
  return files.filter(is).map(({ path }) => path);
}

function sourceFiles(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))
    .sort();
}

/** The folder of a file, or the name of a file of src itself. */
function unitOf(path: string): string {
  return folderOf(path) ?? path.slice(0, -'.ts'.length);
}

/** Undefined for a file of src itself. */
function folderOf(path: string): string | undefined {
  return path.includes('/') ? dirname(path) : undefined;
}

/** The first folder; undefined for a file of src itself. */
function roomOf(path: string): string | undefined {
  return folderOf(path)?.split('/')[0];
}

function mayImport(from: string, to: string): boolean {
  const [own, other] = [roomOf(from) ?? 'main', roomOf(to) ?? 'main'];
  if (own === other) return own !== 'verbs' || folderOf(from) === folderOf(to);
  const [above, below] = [NUMBERS[own] ?? TOP, NUMBERS[other] ?? TOP];
  return below < above || above === TOP || (LOWEST.indexOf(other) < LOWEST.indexOf(own) && above === 0);
}

function isThirdParty(specifier: string): boolean {
  return !specifier.startsWith('.') && !specifier.startsWith('node:');
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function filesImported({ path, imports }: SourceFile): string[] {
  return imports
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => join(dirname(path), specifier).replaceAll('\\', '/').replace(/\.js$/, '.ts'));
}

function scan(path: string): SourceFile {
  const text = readFileSync(join(SRC, path), 'utf8');
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const nodes = descendants(source);
  const imported = new Set(nodes.filter(isImportBinding).map((node) => node.name?.text));
  return {
    path,
    hasHeader: /^\/\*\*[^]*?\*\/\n(?:\n|import )/.test(text),
    imports: nodes.flatMap((node) => specifierOf(node) ?? []),
    hasDefaultExport: nodes.some(isDefaultExport),
    reexports: nodes.some(
      (node) =>
        (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined) ||
        (ts.isExportSpecifier(node) && imported.has((node.propertyName ?? node.name).text)),
    ),
    readsEnvironment: nodes.some(isEnvironment),
    lines: text.split('\n').length - 1,
    longFunctions: nodes.filter(isLongFunction).map(nameOfFunction),
    typedNames: nodes.flatMap(typedNameOf),
  };
}

function descendants(node: ts.Node): ts.Node[] {
  const found = [node];
  node.forEachChild((child) => {
    found.push(...descendants(child));
  });
  return found;
}

/** Of `import … from`, `export … from`, `import(…)` and the type `import('…').X`. */
function specifierOf(node: ts.Node): string | undefined {
  let specifier: ts.Node | undefined;
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) specifier = node.moduleSpecifier;
  else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
    specifier = node.argument.literal;
  else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    specifier = node.arguments[0];
  return specifier !== undefined && ts.isStringLiteralLike(specifier) ? specifier.text : undefined;
}

function typedNameOf(node: ts.Node): (readonly [string, string])[] {
  const isDeclaration =
    ts.isParameter(node) ||
    ts.isVariableDeclaration(node) ||
    ts.isPropertySignature(node) ||
    ts.isPropertyDeclaration(node);
  if (!isDeclaration || node.type === undefined || !ts.isIdentifier(node.name)) return [];
  return [[node.name.text, node.type.getText().replaceAll(/\s+/g, ' ')]];
}

function isLongFunction(node: ts.Node): boolean {
  return ts.isFunctionLike(node) && 'body' in node && node.getText().split('\n').length > LONGEST_FUNCTION;
}

/** Of a function without a name, that of the variable that holds it. */
function nameOfFunction(node: ts.Node): string {
  const named = [node, node.parent].map((one) =>
    ts.isFunctionLike(one) || ts.isVariableDeclaration(one) ? one.name?.getText() : undefined,
  );
  return named.find((name) => name !== undefined) ?? 'without a name';
}

function isImportBinding(node: ts.Node): node is ts.ImportClause | ts.ImportSpecifier | ts.NamespaceImport {
  return ts.isImportClause(node) || ts.isImportSpecifier(node) || ts.isNamespaceImport(node);
}

function isDefaultExport(node: ts.Node): boolean {
  if (ts.isExportAssignment(node)) return true;
  if (ts.isExportSpecifier(node)) return node.name.text === 'default';
  return node.kind === ts.SyntaxKind.DefaultKeyword && !ts.isDefaultClause(node.parent);
}

/** `process.env`, `process['env']`, `{ env } = process`, `import { env } from 'node:process'`. */
function isEnvironment(node: ts.Node): boolean {
  if (ts.isImportDeclaration(node)) return /^['"](node:)?process['"]$/.test(node.moduleSpecifier.getText());
  if (ts.isVariableDeclaration(node))
    return ts.isObjectBindingPattern(node.name) && node.initializer?.getText() === 'process';
  if (ts.isPropertyAccessExpression(node))
    return node.name.text === 'env' && /(^|\.)process$/.test(node.expression.getText());
  return ts.isElementAccessExpression(node) && /(^|\.)process$/.test(node.expression.getText());
}

/** Every import that closes a cycle, as the way around it. `imports`: those of each file or folder. */
function cycles(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (name: string, way: readonly string[]): void => {
    const start = way.indexOf(name);
    if (start >= 0) found.push([...way.slice(start), name].join(' → '));
    if (start >= 0 || done.has(name)) return;
    for (const target of new Set(imports.get(name))) visit(target, [...way, name]);
    done.add(name);
  };
  for (const name of imports.keys()) visit(name, []);
  return found;
}
