/** The sources of options (flags, environment, config file), and their texts as one frozen Options. */
import { CryptodlError, usage } from '../../model/errors.js';
import type { Io } from '../../model/io.js';
import type { DefaultSources } from './flag-spec.js';
import { environmentName, FLAG_NAMES, flagSpec, isSwitch, optionName } from './flags.js';
import type { FlagName, Options } from './flags.js';
import { flagFor, flagsOf, type VerbSpec } from './verb-spec.js';
import { text as parseText, type ParseContext, type ReadList } from './parsers.js';
import { readFacts } from '../../exchange/facts.js';
import { readExchangeWords } from '../../exchange/names.js';
import type { ExchangeSpec } from '../../exchange/exchange-spec.js';

type Origin =
  'flag' | 'environment' | 'config file' | 'job' | 'defaults of the jobs' | 'failure report' | 'default';

/** Texts as given: several for a repeated flag, or for a list or a map in a file. */
export type RawValues = Partial<Record<FlagName, readonly string[]>>;

export interface Invocation {
  readonly verb: VerbSpec;
  readonly operand: string | undefined;
  readonly values: RawValues;
  /** The command line that `schedule` repeats. */
  readonly behind: readonly string[];
}

export interface RawLayer {
  readonly origin: Origin;
  readonly values: RawValues;
  /** The name of an option in messages about this layer. */
  readonly nameOf: (name: FlagName) => string;
}

/** The layer of an option; undefined for a default. The first layer with a value wins; for the flags of a range, the first layer with any of them. */
function layerFinder(verb: VerbSpec, layers: readonly RawLayer[]): (name: FlagName) => RawLayer | undefined {
  const known = new Set(verb.repeatsRun === true ? FLAG_NAMES : flagsOf(verb));
  const ofRange = layers.find((layer) => [...RANGE].some((kind) => layer.values[kind] !== undefined));
  return (name) => {
    if (!known.has(name)) return undefined;
    const own = RANGE.has(name) && ofRange !== undefined ? [ofRange] : layers;
    return own.find((layer) => layer.values[name] !== undefined);
  };
}

export interface Resolved<Names extends FlagName = FlagName> {
  readonly options: Options<Names>;
  readonly origins: Readonly<Record<FlagName, Origin>>;
  /** The given texts, without defaults. A failure report records them. */
  readonly texts: RawValues;
}

export type ExchangeWords = Pick<ExchangeSpec, 'markets' | 'defaultMarket' | 'hosts'>;

function defaultLayer(verb: VerbSpec, exchange: ExchangeWords | undefined): RawLayer {
  const values: RawValues = {};
  for (const name of FLAG_NAMES) {
    const preset = flagFor(name, verb).default;
    if (preset !== undefined) values[name] = [preset];
  }
  if (exchange !== undefined) {
    values.market = [exchange.defaultMarket];
    values['archive-url'] = [exchange.hosts.archive];
  }
  return { origin: 'default', values, nameOf: (name) => `--${name}` };
}

/** Flags, environment and config file of an invocation, in order of precedence. */
export async function layersOf(invocation: Invocation, io: Io): Promise<RawLayer[]> {
  const { verb } = invocation;
  const flags = flagLayer(invocation);
  const environment = environmentLayer(io.environment, verb);
  const layer = [flags, environment].find(({ values }) => values.config !== undefined);
  const file = layer?.values.config?.at(-1);
  if (layer === undefined || file === undefined) return [flags, environment];
  const { configLayer, readConfigFile } = await import('./config-file.js');
  const content = await readConfigFile(file, layer.nameOf('config'));
  return [flags, environment, configLayer(file, content, verb.name)];
}

export function flagLayer({ values }: Pick<Invocation, 'values'>): RawLayer {
  return { origin: 'flag', values, nameOf: (name) => `--${name}` };
}

export function environmentLayer(
  environment: Readonly<Record<string, string | undefined>>,
  verb: VerbSpec,
): RawLayer {
  const values: RawValues = {};
  for (const name of flagsOf(verb)) {
    const text = environment[environmentName(name)];
    if (text !== undefined) values[name] = [text];
  }
  return { origin: 'environment', values, nameOf: environmentName };
}

/** Flags of a range. A range comes from one layer as a whole: a layer with any of these flags hides these flags in later layers. */
const RANGE: ReadonlySet<FlagName> = new Set(['days', 'months', 'from', 'to']);

/**
 * Parses the value of each option from its layer. Throws a usage error for an invalid value. Without an exchange, markets and addresses are
 * those of the flag table.
 */
export function resolveOptions(
  verb: VerbSpec,
  layers: readonly RawLayer[],
  exchange?: ExchangeWords,
  readList?: ReadList,
): Resolved {
  const defaults = defaultLayer(verb, exchange);
  const context = { exchange, readList };
  const layerOf = layerFinder(verb, layers);
  const options: Values = {};
  const origins: Partial<Record<FlagName, Origin>> = {};
  const texts: RawValues = {};
  for (const name of FLAG_NAMES) {
    const own = layerOf(name);
    const layer = own ?? (defaults.values[name] === undefined ? undefined : defaults);
    origins[name] = layer?.origin ?? 'default';
    const unset = isSwitch(name) ? false : undefined;
    options[optionName(name)] = layer === undefined ? unset : valueOf(name, layer, verb, context);
    if (own?.values[name] !== undefined) texts[name] = own.values[name];
  }
  // Without an exchange, the hosts are those of the default exchange.
  const { hosts } = exchange ?? readExchangeWords();
  const from = sourcesOf(options, hosts);
  for (const name of FLAG_NAMES) options[optionName(name)] ??= flagSpec(name).derive?.(from);
  // Files and variables are shared with commands that have a server, so a group from there is left unused.
  const isGroupMeant = ['flag', 'job'].includes(origins['egress-group'] ?? '');
  if (options.egressGroup !== undefined && options.redis === undefined && isGroupMeant)
    throw usage(
      `--egress-group needs --redis, where its programs share their limits`,
      'add --redis redis://HOST:6379',
    );
  assertValues(options, ...FLAG_NAMES);
  return { options: Object.freeze(options), origins: origins as Record<FlagName, Origin>, texts };
}

type Values = Partial<Record<keyof Options, unknown>>;

function sourcesOf(values: Values, hosts: DefaultSources['hosts']): DefaultSources {
  assertValues(values, 'retry-preset', 'archive-url');
  const { retryPreset, archiveUrl } = values;
  return { preset: readFacts('retry-presets.json')[retryPreset], archiveUrl, hosts };
}

/** Throws for a flag with a default whose option has no value, which is a bug. The type of a value is that of its parser. */
function assertValues<Name extends FlagName>(
  values: Values,
  ...names: readonly Name[]
): asserts values is Values & Options<Name> {
  const missing = names.find(
    (name) => values[optionName(name)] === undefined && flagSpec(name).default !== undefined,
  );
  if (missing !== undefined) throw new CryptodlError('bug', `--${missing} has no value`);
}

function valueOf(name: FlagName, layer: RawLayer, verb: VerbSpec, context: ParseContext): unknown {
  try {
    return parseValue(name, layer, verb, context);
  } catch (error) {
    const isPlaced = layer.origin === 'job' || layer.origin === 'defaults of the jobs';
    throw error instanceof CryptodlError && isPlaced ? error.with({ isPlaced }) : error;
  }
}

function parseValue(name: FlagName, layer: RawLayer, verb: VerbSpec, context: ParseContext): unknown {
  const spec = flagSpec(name);
  const { parse: parseOne } = flagFor(name, verb);
  const where = layer.nameOf(name);
  const raw = layer.values[name] ?? [];
  if (spec.list !== 'comma') {
    const value =
      spec.list === 'joined' ? raw.map((item) => parseText(item, where)).join(',') : (raw.at(-1) ?? '');
    return parseOne(value, where, context);
  }
  const parts = raw.flatMap((value) => value.split(',').map((part) => part.trim()));
  const items = new Set(parts.filter((part) => part !== ''));
  if (items.size === 0) throw usage(`${where} is empty`, `give ${where} a value or leave it out`);
  return [...new Set([...items].map((item) => parseOne(item, where, context)))];
}
