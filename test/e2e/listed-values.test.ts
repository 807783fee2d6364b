/** The values that help and completion list for a flag of a verb are those that the verb takes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { flagLayer } from '../../src/cli/option-layers.js';
import { parseCommandLine } from '../../src/cli/program.js';
import { checkRequest } from '../../src/download/jobs.js';
import { systemClock } from '../../src/model/clock.js';
import { CryptodlError } from '../../src/model/errors.js';
import { FORMATS } from '../../src/model/task.js';
import { VERBS } from '../../src/options/flag-spec.js';
import type { Verb } from '../../src/options/flag-spec.js';
import { choicesOf, flagsOf } from '../../src/options/flags.js';
import { resolveOptions } from '../../src/options/resolve.js';
import { readSymbolFile } from '../../src/options/symbols.js';
import { loadBinance } from '../../src/source/binance/binance.js';
import { ALL } from '../../src/source/names.js';
import { datasetsOf, marketNames } from '../../src/source/venue.js';
import { cryptodl } from '../helpers/cli.js';
import { scratchFolder } from '../helpers/folders.js';

const SOURCE = loadBinance();
const LAKE = join(scratchFolder(), 'lake');
mkdirSync(join(LAKE, SOURCE.name), { recursive: true });
/** Verbs whose selection is checked before the first request. */
const SELECTING: readonly Verb[] = ['vision', 'metrics', 'list', 'audit'];

async function isTaken(...words: readonly string[]): Promise<boolean> {
  // Only the verb itself refuses several markets, and it sends no request.
  if (words[0] === 'schema') return (await cryptodl(words)).code === 0;
  try {
    const invocation = parseCommandLine(words, { stdout: { write: () => true } });
    if (invocation === undefined) return false;
    const { verb } = invocation;
    const resolved = resolveOptions(verb, [flagLayer(invocation)], SOURCE);
    const context = { source: SOURCE, clock: systemClock, read: readSymbolFile };
    if (SELECTING.includes(verb))
      await checkRequest(verb === 'metrics' ? 'metrics' : 'vision', resolved, context);
    return true;
  } catch (error) {
    if (error instanceof CryptodlError) return false;
    throw error;
  }
}

const MARKETS = [...marketNames(SOURCE), ALL];
const DATASETS = [
  ...new Set(marketNames(SOURCE).flatMap((market) => datasetsOf(SOURCE, market).map(({ name }) => name))),
  ALL,
];

const OPERANDS: Partial<Record<Verb, readonly string[]>> = {
  list: ['symbols'],
  schema: ['klines'],
  bars: ['15m'],
  enqueue: ['vision', 'metrics'],
  export: ['csv'],
};

/** The lines of a verb with what it needs, one for each of its operands. */
function linesOfVerb(verb: Verb): string[][] {
  return (OPERANDS[verb] ?? ['']).map((operand) => lineOf(verb, operand === '' ? [] : [operand]));
}

function lineOf(verb: Verb, operand: readonly string[]): string[] {
  const lake = flagsOf(verb).includes('out') ? ['--out', LAKE] : [];
  return [
    verb,
    ...operand,
    ...lake,
    ...(verb === 'enqueue' ? ['--redis', 'redis://queue'] : []),
    ...(verb === 'list' || verb === 'schema' ? [] : ['--symbols', 'BTCUSDT']),
  ];
}

const ofFlag = (name: 'market' | 'dataset' | 'format'): Verb[] =>
  VERBS.filter((verb) => flagsOf(verb).includes(name));

async function takenBy(values: readonly string[], linesOf: (value: string) => string[][]): Promise<string[]> {
  const taken: string[] = [];
  for (const value of values)
    for (const line of linesOf(value))
      if (!taken.includes(value) && (await isTaken(...line))) taken.push(value);
  return taken;
}

it.each(ofFlag('market'))('the markets of %s', async (verb) => {
  const datasets = verb === 'schema' ? ['klines', 'BVOLIndex'] : DATASETS;
  const taken = await takenBy(MARKETS, (market) =>
    datasets.flatMap((dataset) =>
      verb === 'schema'
        ? [['schema', dataset, '--market', market]]
        : linesOfVerb(verb).map((line) => [
            ...line,
            '--market',
            market,
            ...(flagsOf(verb).includes('dataset') ? ['--dataset', dataset] : []),
          ]),
    ),
  );
  expect(taken.sort()).toEqual([...(choicesOf('market', verb) ?? [])].sort());
});

it.each(ofFlag('dataset'))('the datasets of %s', async (verb) => {
  const taken = await takenBy(DATASETS, (dataset) =>
    MARKETS.flatMap((market) =>
      linesOfVerb(verb).map((line) => [...line, '--market', market, '--dataset', dataset]),
    ),
  );
  expect(taken.sort()).toEqual([...(choicesOf('dataset', verb) ?? [])].sort());
});

it.each(ofFlag('format'))('the formats of %s', async (verb) => {
  const taken = await takenBy([...FORMATS, 'feather'], (format) =>
    linesOfVerb(verb).map((line) => [...line, '--format', format]),
  );
  expect(taken.sort()).toEqual([...(choicesOf('format', verb) ?? [])].sort());
});
