/** `cryptodl schema DATASET`: prints the columns of a dataset with type, unit and meaning, and notes about its files. */
import { usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { dataset as parseDataset } from '../../plan/options/exchange-values.js';
import type { Resolved } from '../../plan/options/resolve.js';
import { describeDataset, marketWith } from '../../exchange/describe.js';
import { oneMarket } from '../../plan/select/select-datasets.js';
import { allDatasets, findDataset, type ExchangeSpec } from '../../exchange/exchange-spec.js';
import { didYouMean } from '../../text/did-you-mean.js';
import { writeData } from '../../terminal/write-data.js';
import { table } from '../../text/table.js';
import { widthOf } from '../../text/wrap.js';

/** The operand is the name of a dataset. Rejects with usage errors. */
export async function schema(command: VerbCall<'market' | 'json'>): Promise<ExitCode> {
  const { exchange, resolved, io, operand } = command;
  const { market, spec } = choose(exchange, operand, resolved);
  const description = describeDataset(exchange, market, spec);
  await writeData(io, resolved.options.json ? [description] : textOf(description, widthOf(io.stdout)));
  return 0;
}

/**
 * The dataset in the given market; if no market is given, in the default market or else in the first market that has it. Throws a usage
 * error, which names a market with the dataset if there is one.
 */
function choose(exchange: ExchangeSpec, word: string | undefined, { options, origins }: Resolved<'market'>) {
  const market = oneMarket(exchange, options, 'schema');
  const hint = 'cryptodl list datasets shows all';
  if (word === undefined) throw usage('schema needs a dataset', hint);
  const name = parseDataset('any')(word, 'schema', { exchange });
  const owner = findDataset(exchange, market, name) === undefined ? marketWith(exchange, name) : market;
  const spec = owner === undefined ? undefined : findDataset(exchange, owner, name);
  if (owner === undefined || spec === undefined) {
    const names = allDatasets(exchange).map((dataset) => dataset.name);
    throw usage(`no market has a dataset "${word}"`, didYouMean(word, names) ?? hint);
  }
  if (owner === market || origins.market === 'default') return { market: owner, spec };
  throw usage(`${market} has no ${name}`, `${owner} has it: --market ${owner}`);
}

function textOf(description: ReturnType<typeof describeDataset>, width = Infinity): string[] {
  const { market, dataset, title, columns, facts, notes } = description;
  const cells = columns.map(({ name, type, unit, doc }) => [name, type, unit, doc]);
  const { lines } = table([{}, {}, {}, {}], cells, { width: width - INDENT.length });
  return [
    `${market} ${dataset}: ${title}`,
    '',
    ...lines.map((line) => `${INDENT}${line}`),
    '',
    ...facts.map(([what, text]) => `${INDENT}${what.padEnd(12)}${text}`),
    ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `${INDENT}- ${note}`)]),
  ];
}

const INDENT = '  ';
