/** Which rooms of src may import which, and the rules for every file. Type-only and lazy imports count like all others. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));

const list = (names: string): string[] => names.split(' ');

/** What every room may know. */
const BASE = list('model text');

/**
 * A row per room, lowest first: the rooms that it may import. A room inside a room (`http/retry`) counts as the outer one.
 * The composition of a run is `download`; a verb that only one room serves stands in that room.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  // nouns and texts
  model: ['http'],
  text: [],
  files: BASE,
  queue: ['http', 'model'],

  // the connection to Redis
  redis: BASE,

  // one request
  http: [...list('files redis'), ...BASE],

  // an exchange; how it packs its objects is told by convert/unzip
  source: [...list('convert http options'), ...BASE],
  options: ['source', ...BASE],

  // a bucket of S3
  s3: [...list('http options source'), ...BASE],
  // a lake in a bucket, as a local lake for all other rooms
  mirror: [...list('files http lake options queue s3 source'), ...BASE],

  // the store, and bytes on their way into it
  lake: [...list('files http'), ...BASE],
  convert: [...list('files http lake source'), ...BASE],
  write: [...list('convert http lake queue source'), ...BASE],
  // what a lake holds and lacks
  catalogue: [...list('convert lake source'), ...BASE],

  // from options to partitions
  plan: [...list('catalogue files lake queue source'), ...BASE],
  select: [...list('catalogue http lake options plan report source'), ...BASE],

  // a run
  report: [...list('files http'), ...BASE],
  // the figures of runs for other programs
  monitor: [...list('files http lake report'), ...BASE],
  // what a run does, for a person who looks for a fault
  debug: [...list('files http options report'), ...BASE],
  // messages to addresses of the user
  notify: [...list('http options report'), ...BASE],
  download: [
    ...list(
      'catalogue check cli convert debug files http lake monitor notify options plan queue report select source verify write',
    ),
    ...BASE,
  ],

  // a capability each
  audit: [
    ...list('catalogue cli convert download files lake options plan queue report select source'),
    ...BASE,
  ],
  bars: [...list('catalogue cli convert download files lake options report select source write'), ...BASE],
  catalog: [...list('cli download options plan queue select source'), ...BASE],
  check: [...list('catalogue cli coverage lake monitor options report select source'), ...BASE],
  remove: [...list('catalogue cli download lake options select source'), ...BASE],
  coverage: [...list('catalogue cli lake options select source'), ...BASE],
  doctor: [...list('cli convert download files http lake options queue redis source'), ...BASE],
  export: [...list('catalogue cli convert coverage files lake options queue select source'), ...BASE],
  page: [...list('catalogue check cli coverage files lake monitor report'), ...BASE],
  plot: [...list('catalogue cli convert coverage files options page query select source'), ...BASE],
  query: [...list('catalogue cli convert lake options select source'), ...BASE],
  universe: [...list('catalogue cli convert download files options query select source'), ...BASE],
  runs: [...list('cli lake monitor options'), ...BASE],
  schedule: [...list('cli download options select source'), ...BASE],
  // The other end of the wire: what it shared with the client would hide a mistake of both.
  serve: ['options', ...BASE],
  workers: [...list('cli download lake mirror options plan queue redis report select source'), ...BASE],
  verify: [
    ...list('catalogue cli convert download files lake options plan queue select source write'),
    ...BASE,
  ],

  // from arguments to a capability
  cli: [...list('download main options source'), ...BASE],
  library: [
    ...list(
      'audit catalog convert coverage download files mirror options query report s3 select source verify',
    ),
    ...BASE,
  ],
  main: [
    ...list(
      'audit bars catalog check cli coverage doctor download export files mirror options page plot query remove report runs schedule select serve source universe verify workers',
    ),
    ...BASE,
  ],
};

/**
 * The rooms that read manifests themselves. `catalogue` does it for all verbs that only read. The others write lines, and compare what they
 * write with the lines before: a plan, the rows of an object, months that are made again, and repairs.
 */
const READ_MANIFESTS = list('bars catalogue download plan verify write');
const MANIFEST_MODULES = /\/lake\/(?:manifest|manifests|held-objects|inspect-manifest)\.js$/;

/** Each third-party package has one owner; the second name of a row needs its reason. */
const OWNERS: Readonly<Record<string, readonly string[]>> = {
  '@duckdb/node-api': ['convert/duckdb.ts'],
  '@aws-sdk/client-s3': ['s3/client.ts'],
  '@aws-sdk/lib-storage': ['s3/client.ts'],
  bullmq: ['workers/bullmq.ts'],
  'cli-progress': ['report/progress-state.ts'],
  commander: ['cli/program.ts'],
  'fastest-levenshtein': ['text/did-you-mean.ts'],
  hyparquet: ['convert/parquet-footer.ts'],
  ioredis: ['redis/connection.ts'],
  'p-queue': ['queue/places.ts'],
  picomatch: ['select/select-symbols.ts'],
  pino: ['report/log.ts'],
  'prom-client': ['monitor/prometheus.ts'],
  // transport.ts names the type of the response it reads, nothing else.
  undici: ['http/transport/pool.ts', 'http/transport/transport.ts'],
  // Four schemas of four formats, each beside its reader: the record of a staged zip or of a run, the failure report, and the venue facts.
  valibot: [
    'lake/orders.ts',
    'mirror/staged-zips.ts',
    'model/settings-schema.ts',
    'monitor/run-record.ts',
    'report/failure-report.ts',
    'source/facts.ts',
  ],
  yaml: ['options/config-file.ts'],
  yauzl: ['convert/unzip/zip-entry.ts'],
  yazl: ['export/write-rows.ts'],
};

/**
 * The most lines of each room. A number is right while it is at most 100 above the lines of its room; a failure shows the number to enter
 * as expected. A number above the earlier one needs its reason in the message of the commit.
 */
const LINES: Readonly<Record<string, number>> = {
  audit: 1000,
  bars: 1100,
  catalog: 500,
  catalogue: 2350,
  cli: 1400,
  convert: 3800,
  check: 450,
  coverage: 1150,
  debug: 300,
  doctor: 700,
  download: 4000,
  export: 1600,
  files: 500,
  http: 5700,
  lake: 3850,
  library: 700,
  main: 300,
  mirror: 1450,
  model: 1600,
  monitor: 1300,
  notify: 250,
  options: 2900,
  page: 450,
  plan: 2600,
  plot: 1050,
  query: 500,
  queue: 1200,
  redis: 250,
  remove: 350,
  report: 2500,
  runs: 150,
  s3: 950,
  schedule: 300,
  select: 1950,
  serve: 750,
  source: 2600,
  text: 550,
  universe: 700,
  verify: 1100,
  workers: 2100,
  write: 1450,
};
const LINES_STEP = 50;
const LINES_SLACK = 100;

/** Functions of more than fifty lines. The list may only become shorter. */
const LONG_FUNCTIONS: readonly string[] = [
  'download/download.ts runAndPrint',
  'download/execute-plan.ts runAll',
  'download/http-session.ts openStack',
  'download/session.ts openSession',
  'page/report.ts report',
  'plan/series-listing.ts listSeries',
  'select/continue-lake.ts continueLake',
  'verify/select-repairs.ts selectRepairs',
  'workers/process-job.ts processJob',
  'workers/wait-for-jobs.ts conclude',
  'workers/worker.ts work',
];
const LONGEST_FUNCTION = 50;

/** What `import 'cryptodl'` gives. */
const PACKAGE = 'library.ts';
const NO_FOLDERS = ['common', 'helper', 'helpers', 'lib', 'misc', 'shared', 'util', 'utils'];
/** The library reads it for buckets only, because the credentials of AWS stand there. */
const READS_ENVIRONMENT = ['cli/process.ts', 'library/lake-in-bucket.ts'];
/** write-data.ts is the way to stdout; program.ts prints help, which is text of ours. */
const WRITES_TO_STREAMS = ['cli/program.ts', 'cli/write-data.ts'];

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
}

const files = sourceFiles(SRC).map(scan);
const byPath = new Map(files.map((file) => [file.path, file]));

describe('src', () => {
  it('imports only what the table allows', () => {
    const wrong = files.flatMap((file) =>
      filesImported(file)
        .map((target) => ({ target, to: unitOf(target) }))
        .filter(({ to }) => to !== unitOf(file.path) && !MAY_IMPORT[unitOf(file.path)]?.includes(to))
        .map(({ target }) => `${file.path} → ${target}`),
    );
    expect(wrong).toEqual([]);
  });

  it('reads manifests in the catalogue and in the rooms that write a lake only', () => {
    const readers = files.filter(({ imports }) => imports.some((path) => MANIFEST_MODULES.test(path)));
    const rooms = new Set(readers.map(({ path }) => unitOf(path)));
    rooms.delete('lake');
    expect([...rooms].sort()).toEqual(READ_MANIFESTS);
  });

  it('has a row in the table for each of its folders and root files, and no other row', () => {
    expect(Object.keys(MAY_IMPORT).sort()).toEqual(
      [...new Set(files.map(({ path }) => unitOf(path)))].sort(),
    );
  });

  it('has no more lines in a room than the table says, and not many fewer', () => {
    const lines: Record<string, number> = {};
    for (const file of files) lines[unitOf(file.path)] = (lines[unitOf(file.path)] ?? 0) + file.lines;
    const right = Object.entries(lines).map(([room, count]) => {
      const most = LINES[room] ?? 0;
      const isRight = count <= most && most <= count + LINES_SLACK;
      return [room, isRight ? most : Math.ceil(count / LINES_STEP) * LINES_STEP];
    });
    expect(LINES).toEqual(Object.fromEntries(right));
  });

  it('has no longer functions than those of the list', () => {
    expect(
      files.flatMap(({ path, longFunctions }) => longFunctions.map((name) => `${path} ${name}`)),
    ).toEqual(LONG_FUNCTIONS);
  });

  it('has no cycles', () => {
    expect(cycles()).toEqual([]);
  });

  it('has one owner for each third-party package', () => {
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

  it('has no barrels: nothing is exported from a file that does not make it, but by the package itself', () => {
    expect(
      pathsWhere((file) => file.path !== PACKAGE && (file.reexports || file.path.endsWith('index.ts'))),
    ).toEqual([]);
  });

  it('has a comment at the head of each file', () => {
    expect(pathsWhere((file) => !file.hasHeader)).toEqual([]);
  });

  it('has no folder for things without a place', () => {
    const folders = files.flatMap(({ path }) => path.split('/').slice(0, -1));
    expect(folders.filter((name) => NO_FOLDERS.includes(name))).toEqual([]);
  });

  it('reads the environment only where the process becomes an Io', () => {
    expect(pathsWhere((file) => file.readsEnvironment)).toEqual(READS_ENVIRONMENT);
  });

  it('writes to stdout and stderr only where control characters are escaped and passwords masked', () => {
    const writes = /\bstd(?:out|err)\.write\(/;
    const writing = pathsWhere(({ path }) => writes.test(readFileSync(join(SRC, path), 'utf8')));
    expect(writing).toEqual(WRITES_TO_STREAMS);
  });

  it('ARCHITECTURE.md has a line for each room, in at most 120 lines', () => {
    const map = readFileSync(join(SRC, '../ARCHITECTURE.md'), 'utf8');
    const rooms = [...new Set(files.flatMap(({ path }) => roomOf(path) ?? []))];
    expect(rooms.filter((room) => !map.includes(`src/${room}/`))).toEqual([]);
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

/** Folder, or root file without its ending. */
function unitOf(path: string): string {
  return path.includes('/') ? path.slice(0, path.indexOf('/')) : path.slice(0, -'.ts'.length);
}

/** Undefined for a root file. */
function roomOf(path: string): string | undefined {
  return path.includes('/') ? dirname(path) : undefined;
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

/** Every import that closes a cycle, as the way around it. */
function cycles(): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const start = way.indexOf(path);
    if (start >= 0) found.push([...way.slice(start), path].join(' → '));
    const file = byPath.get(path);
    if (start >= 0 || done.has(path) || file === undefined) return;
    for (const target of new Set(filesImported(file))) visit(target, [...way, path]);
    done.add(path);
  };
  for (const { path } of files) visit(path, []);
  return found;
}
