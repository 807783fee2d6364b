// Joins the compiled files and the packages that they use to a few files in dist/bundle, so that Node opens a few files at each start instead
// of hundreds: command.cjs has the command line with its help, rest.cjs has everything that a command loads when it needs it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ENTRY = join(ROOT, 'dist/process.js');
const FOLDER = join(ROOT, 'dist/bundle');
/** DuckDB has a native binary for each platform. The others are optional packages of the user. */
const EXTERNAL = [/^node:/, '@duckdb/node-api', 'bullmq', 'ioredis', /^@aws-sdk\//];

/** @type {import('rolldown').OutputOptions} */
const FORMAT = { format: 'cjs', dir: FOLDER, entryFileNames: '[name].cjs', chunkFileNames: '[name].cjs' };
/** A module runs when it is first imported, as without a bundle. */
const ORDER = { strictExecutionOrder: true };

const atStart = await modulesAtStart();
const bundle = await rolldown({
  input: { program: ENTRY },
  platform: 'node',
  external: EXTERNAL,
  logLevel: 'silent',
});
const { output } = await bundle.write({
  ...FORMAT,
  ...ORDER,
  sourcemap: true,
  // Shorter, and names of functions stay for stacks and profiles.
  minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  codeSplitting: {
    groups: [
      { name: 'command', test: (id) => atStart.has(id), priority: 2 },
      { name: 'rest', test: () => true, priority: 1 },
    ],
  },
});
await bundle.close();
/** @type {Set<string>} */
const bundled = new Set();
for (const file of output) {
  if (file.type === 'chunk') {
    for (const id of file.moduleIds) bundled.add(id);
    // bin/load-bundle.js has the function. Its name is as long as the keyword, so the columns of the source map stay right.
    writeFileSync(join(FOLDER, file.fileName), file.code.replaceAll(/\bimport\(/g, 'impESM('));
  } else if (file.fileName.endsWith('.map')) withoutSources(join(FOLDER, file.fileName));
}
writeFileSync(join(FOLDER, 'LICENSES.txt'), licences([...bundled]));

/** The files that the entry imports statically. */
async function modulesAtStart() {
  /** @type {Set<string>} */
  const found = new Set();
  const start = await rolldown({
    input: ENTRY,
    platform: 'node',
    external: EXTERNAL,
    logLevel: 'silent',
    plugins: [
      {
        name: 'only static imports',
        resolveId: (id, _, { kind }) => (kind === 'dynamic-import' ? { id, external: true } : null),
        moduleParsed: ({ id }) => {
          found.add(id);
        },
      },
    ],
  });
  await start.generate(FORMAT);
  await start.close();
  return found;
}

/** The compiled files are in the package, so their text need not be in the map. */
function withoutSources(/** @type {string} */ path) {
  const { sourcesContent: _, ...map } = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify(map));
}

/** Names and licences of the packages that the bundle contains. */
function licences(/** @type {readonly string[]} */ ids) {
  const folders = new Set(ids.flatMap((id) => packageFolder(id) ?? []));
  return [...folders]
    .toSorted()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
      const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
      return `${name} ${version} (${license})\n\n${text}\n`;
    })
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** The folder of the package of a module; undefined for a file of the program. */
function packageFolder(/** @type {string} */ id) {
  const at = id.lastIndexOf(`${sep}node_modules${sep}`);
  if (at < 0) return undefined;
  const folder = at + `${sep}node_modules${sep}`.length;
  const [scope = '', name = ''] = id.slice(folder).split(sep);
  return join(id.slice(0, folder), scope, scope.startsWith('@') ? name : '');
}
