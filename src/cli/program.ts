/** Owner of commander: the command line, made from the flag table. */
import { Command, CommanderError, Option } from 'commander';
import { didYouMean } from '../did-you-mean.js';
import { usage } from '../errors.js';
import type { Io } from '../io.js';
import { flagSpec, flagsOf, GROUPS } from '../options/flags.js';
import type { FlagName, Verb } from '../options/flags.js';
import type { RawValues } from '../options/resolve.js';
import { TOOL_VERSION } from '../version.js';

/** What was typed. `file` is the operand of `retry` and `serve`. */
export interface Invocation {
  readonly verb: Verb;
  readonly operand: string | undefined;
  readonly values: RawValues;
}

interface VerbText {
  readonly operand?: string;
  readonly doc: string;
  readonly examples: readonly string[];
}

const VERBS: Readonly<Record<Verb, VerbText>> = {
  vision: {
    doc: 'download from the Binance Vision archive into the lake',
    examples: [
      'cryptodl vision --symbols BTCUSDT,ETHUSDT --days 7',
      "cryptodl vision --market spot --interval 1m,1h --symbols '*USDT,!USDCUSDT' --from 2024-01-01 --to 2024-03-31",
      'cryptodl vision --dataset metrics,fundingRate --symbols @universe.txt --months 6 --format csv',
    ],
  },
  retry: {
    operand: '<report>',
    doc: 'run what a failure report lists; what succeeds leaves it',
    examples: ['cryptodl retry data/failures/vision-20261121T070000Z.jsonl'],
  },
  serve: {
    operand: '<directory>',
    doc: "serve a folder of archive keys in the archive's own protocol",
    examples: [
      'cryptodl serve ./raw --port 8090',
      'cryptodl vision --archive-url http://127.0.0.1:8090 --symbols BTCUSDT --days 7',
    ],
  },
};

/** Undefined when help or the version was asked for and printed. Throws usage errors. */
export function parseCommandLine(argv: readonly string[], io: Io): Invocation | undefined {
  let invocation: Invocation | undefined;
  const program = new Command('cryptodl')
    .description('Bulk crypto market data, complete and verified, in a lake you can query.')
    .version(TOOL_VERSION)
    .exitOverride()
    .configureOutput({ writeOut: (text) => io.stdout.write(text), writeErr: () => undefined })
    .showSuggestionAfterError(true)
    .argument('[command]')
    .action((word: string | undefined) => {
      if (word === undefined)
        throw usage('no command given', 'cryptodl vision --symbols BTCUSDT --days 1, or cryptodl --help');
      throw usage(
        `"${word}" is no command`,
        didYouMean(word, Object.keys(VERBS)) ?? `commands are ${Object.keys(VERBS).join(', ')}`,
      );
    });
  for (const verb of Object.keys(VERBS) as Verb[]) {
    addVerb(program, verb, (operand, values) => {
      invocation = { verb, operand, values };
    });
  }
  try {
    program.parse([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw usageOf(error, argv);
  }
  return invocation;
}

function addVerb(
  program: Command,
  verb: Verb,
  act: (operand: string | undefined, values: RawValues) => void,
): void {
  const { operand, doc, examples } = VERBS[verb];
  const command = program
    .command(verb)
    .description(doc)
    .allowExcessArguments(false)
    .helpOption('-h, --help', 'show this help');
  if (operand !== undefined) command.argument(operand);
  for (const group of GROUPS) {
    for (const name of flagsOf(verb).filter((candidate) => flagSpec(candidate).group === group))
      command.addOption(optionOf(name));
  }
  if (flagsOf(verb).includes('progress')) command.addOption(new Option('--no-progress').hideHelp());
  command.addHelpText(
    'after',
    `\nExamples:\n${examples.map((line) => `  ${line}`).join('\n')}\n\nEvery flag has an environment twin: --archive-url is CRYPTODL_ARCHIVE_URL.`,
  );
  command.action((...args: unknown[]) => {
    const given = operand === undefined ? undefined : String(args[0]);
    act(given, rawValues(command, verb));
  });
}

function optionOf(name: FlagName): Option {
  const spec = flagSpec(name);
  const shown = spec.default === undefined ? '' : ` (default: ${spec.default})`;
  const option = new Option(
    `--${name}${spec.value === undefined ? '' : ` <${spec.value}>`}`,
    `${spec.doc}${shown}`,
  );
  option.helpGroup(`${spec.group}:`);
  if (spec.value !== undefined)
    option.argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text]);
  return option;
}

function rawValues(command: Command, verb: Verb): RawValues {
  const values: RawValues = {};
  for (const name of flagsOf(verb)) {
    if (command.getOptionValueSource(attribute(name)) !== 'cli') continue;
    const value: unknown = command.getOptionValue(attribute(name));
    if (name === 'progress' && value === false) values[name] = ['none'];
    else values[name] = Array.isArray(value) ? value.map(String) : [String(value)];
  }
  return values;
}

/** commander keeps `--dry-run` as `dryRun`. */
function attribute(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** commander's message in our form: one line that says what was wrong, one that says what to type. */
function usageOf(error: CommanderError, argv: readonly string[]): Error {
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n');
  const suggestion = rest
    .map((line) => line.replace(/^\(|\)$/g, ''))
    .find((line) => line.startsWith('Did you mean'));
  const verb = argv.find((word) => Object.hasOwn(VERBS, word));
  if (error.code === 'commander.excessArguments' && verb === 'vision') {
    const extra = argv.filter(
      (word, index) => !word.startsWith('-') && word !== verb && !(argv[index - 1] ?? '').startsWith('--'),
    );
    return usage(
      `vision takes no operand, "${extra[0] ?? ''}" is one too many`,
      `cryptodl vision --symbols ${extra.join(',')}`,
    );
  }
  return usage(
    first,
    suggestion?.replace('Did you mean', 'did you mean') ??
      `cryptodl ${verb === undefined ? '' : `${verb} `}--help`,
  );
}
