// Writes the documents that are made from the program's tables. Needs a build.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { toJsonSchema } from '@valibot/to-json-schema';
import { format, resolveConfig } from 'prettier';
import { datasetsDocument, faultsDocument, flagRows, flagsDocument } from './documents.js';

/** @param {string} path */
const at = (path) => new URL(`../${path}`, import.meta.url);
/** @param {string} path */
const built = (path) => import(at(`dist/${path}`).href);

const { loadBinance } = await built('exchange/binance/binance.js');
const { FACTS } = await built('exchange/facts.js');
const { MARKETS } = await built('exchange/names.js');
const { describeDataset } = await built('exchange/describe.js');
const { FLAG_NAMES, environmentName, flagSpec } = await built('plan/options/flags.js');
const { VERBS } = await built('main.js');

const exchange = loadBinance();
const descriptions = MARKETS.flatMap((/** @type {string} */ market) =>
  Object.values(exchange.markets[market].datasets).map((spec) => describeDataset(exchange, market, spec)),
);
const flags = flagRows(FLAG_NAMES, { flagSpec, environmentName, verbs: Object.values(VERBS) });

/** Titles of the fault tests, as vitest lists them. */
function faultTitles() {
  const vitest = fileURLToPath(at('node_modules/vitest/vitest.mjs'));
  const listed = execFileSync(
    process.execPath,
    [vitest, 'list', '--config', 'test/faults/vitest.config.ts', '--json'],
    {
      cwd: at('.'),
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  /** @type {{ name: string }[]} */
  const tests = JSON.parse(listed.slice(listed.indexOf('[')));
  return tests.map(({ name }) => name.slice(name.lastIndexOf(' > ') + 3));
}

/**
 * @param {string} path
 * @param {string} text
 */
async function write(path, text) {
  const options = await resolveConfig(at(path));
  writeFileSync(at(path), await format(text, { ...options, filepath: path }));
  console.log(`wrote ${path}`);
}

await write('docs/datasets.md', datasetsDocument(descriptions));
await write('docs/flags.md', flagsDocument(flags));
await write('docs/faults.md', faultsDocument(faultTitles()));

for (const [name, schema] of Object.entries(FACTS)) {
  // The check of a halt that ends before it begins has no form in a JSON schema.
  const text = toJsonSchema(schema, { typeMode: 'input', errorMode: 'ignore' });
  await write(`config/${name.replace('.json', '.schema.json')}`, JSON.stringify(text));
}
