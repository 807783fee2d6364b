/** `import { vision } from 'cryptodl'`: a run of `cryptodl vision` as an async iterable of outcomes. */
import { homedir } from 'node:os';
import { systemClock } from './model/clock.js';
import { CryptodlError, usage } from './model/errors.js';
import { didYouMean } from './text/did-you-mean.js';
import { SILENT_OBSERVER } from './model/observer.js';
import type { Announcement, Observer } from './model/observer.js';
import { camelCase, flagsOf, flagSpec, nameOptions, withOptionNames } from './options/flags.js';
import type { CamelCase, FlagName, FlagValue } from './options/flags.js';
import { resolveOptions } from './options/resolve.js';
import type { RawLayer, RawValues } from './options/resolve.js';
import { readSymbolFile } from './options/symbols.js';
import { folderOf, NO_PROXIES } from './options/environment.js';
import type { TaskOutcome } from './model/outcome.js';
import { summaryOf } from './download/conclude-run.js';
import type { RunSummary } from './download/conclude-run.js';
import { startRun } from './download/run.js';
import type { ALL, MARKETS } from './source/names.js';
import { loadBinance } from './source/binance/binance.js';

export { CryptodlError };
export type { Announcement, RunSummary, TaskOutcome };

/** Flags that have a meaning only on a command line or for another verb. */
const COMMAND_LINE = [
  'dry-run',
  'json',
  'progress',
  'quiet',
  'long',
  'log-file',
  'log-level',
  'config',
  'print-options',
  'host',
  'port',
  'include-today',
  'ping',
  'join',
  'only',
  'jobs',
  'at',
  'every',
  'kind',
] as const satisfies readonly FlagName[];

/** Durations are milliseconds or text with a unit (`30s`), sizes bytes or text (`2GiB`). */
type ValueOf<T> = T extends boolean
  ? boolean
  : T extends string
    ? T
    : T extends readonly (infer Item)[]
      ? ValueOf<Item> | readonly ValueOf<Item>[]
      : number | string | Date;

/** The flags of `cryptodl vision`, in camelCase; dates are UTC days (`2024-01-31` or a Date). */
export type VisionOptions = {
  readonly [Name in Exclude<FlagName, (typeof COMMAND_LINE)[number]> as CamelCase<Name>]?:
    ValueOf<GivenValue<Name>> | undefined;
};

/** The type that the caller gives: for markets and symbols, it is not the type of the parsed value. */
type GivenValue<Name extends FlagName> = Name extends 'market'
  ? readonly MarketWord[]
  : Name extends 'symbols'
    ? readonly string[]
    : FlagValue<Name>;

type MarketWord = (typeof MARKETS)[number] | typeof ALL;

export interface VisionHooks {
  /** Ends the run. Committed data stays, and `summary()` and the loop reject with the code `interrupted`. */
  readonly signal?: AbortSignal;
  /** Called once, before the first request for an object. */
  readonly onPlan?: (plan: Announcement) => void;
  readonly onWarning?: (message: string) => void;
}

/** Outcomes in the order of their arrival. Leaving the loop ends the run. */
export interface VisionRun extends AsyncIterable<TaskOutcome> {
  /**
   * The counts of the finished run. Call it after the loop. Without a loop, it carries out the whole run, and the outcomes cannot
   * be read afterwards. Rejects with a CryptodlError if the run could not begin or ended early: `usage`, `locked`, `disk-full`,
   * `interrupted` and so on.
   */
  summary(): Promise<RunSummary>;
}

/**
 * Downloads into the lake like `cryptodl vision`, without printing and without reading environment or config file.
 * The run begins when the first outcome or the summary is requested. A failed object is an outcome, not an exception.
 * Unknown or invalid options and hooks throw a CryptodlError with the code `usage`.
 */
export function vision(options: VisionOptions, hooks: VisionHooks = {}): VisionRun {
  if (!isObject(options))
    throw usage('vision takes an object of options', "vision({ symbols: 'BTCUSDT', days: 7 })");
  checkHooks(hooks);
  const layer: RawLayer = { origin: 'flag', values: rawValues(options), nameOf: camelCase };
  const run = startRun({
    source: loadBinance(),
    verb: 'vision',
    resolved: resolveOptions('vision', [layer]),
    surroundings: { home: folderOf(homedir()), stateHome: undefined, proxies: NO_PROXIES },
    read: readSymbolFile,
    observer: observerOf(hooks),
    clock: systemClock,
    signal: hooks.signal ?? new AbortController().signal,
  });
  const finish = async (): Promise<RunSummary> => {
    const end = await run.end();
    if (end.ended !== undefined) throw end.ended;
    return summaryOf(end);
  };
  return {
    summary: async () => finish().catch(throwInOptionNames),
    async *[Symbol.asyncIterator]() {
      try {
        for await (const outcome of run) yield inOptionNames(outcome);
        await finish();
      } catch (error) {
        throwInOptionNames(error);
      }
    },
  };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const SIGNAL_ARGUMENT = 'vision(options, { signal })';

/** The test of each hook, its kind as text, and an example for the message about a wrong value. */
const HOOKS: Readonly<
  Record<keyof VisionHooks, { is: (value: unknown) => boolean; kind: string; example: string }>
> = {
  signal: {
    is: (value) => value instanceof AbortSignal,
    kind: 'an AbortSignal',
    example: 'vision(options, { signal: AbortSignal.timeout(60_000) })',
  },
  onPlan: {
    is: (value) => typeof value === 'function',
    kind: 'a function',
    example: 'vision(options, { onPlan: (plan) => console.log(plan) })',
  },
  onWarning: {
    is: (value) => typeof value === 'function',
    kind: 'a function',
    example: 'vision(options, { onWarning: (message) => console.warn(message) })',
  },
};

/** Throws a usage error for unknown hooks and for hooks of a wrong type. */
function checkHooks(hooks: unknown): void {
  if (!isObject(hooks))
    throw usage('the second argument of vision must be an object of hooks', SIGNAL_ARGUMENT);
  for (const wrong of [AbortSignal, AbortController])
    if (hooks instanceof wrong)
      throw usage(
        `the second argument of vision is an ${wrong.name} instead of an object of hooks`,
        SIGNAL_ARGUMENT,
      );
  for (const [key, value] of Object.entries(hooks)) {
    if (!isHook(key)) {
      const names = Object.keys(HOOKS);
      throw usage(`vision has no hook "${key}"`, didYouMean(key, names) ?? `hooks are ${names.join(', ')}`);
    }
    const { is, kind, example } = HOOKS[key];
    if (value !== undefined && !is(value)) throw usage(`${key} is not ${kind}`, example);
  }
}

function isHook(name: string): name is keyof VisionHooks {
  return Object.hasOwn(HOOKS, name);
}

function throwInOptionNames(error: unknown): never {
  throw error instanceof CryptodlError ? withOptionNames(error, camelCase) : error;
}

function inOptionNames(outcome: TaskOutcome): TaskOutcome {
  if (outcome.outcome !== 'failed') return outcome;
  return { ...outcome, message: nameOptions(outcome.message, camelCase) };
}

function rawValues(options: VisionOptions): RawValues {
  const names = new Map(
    flagsOf('vision')
      .filter((name) => !COMMAND_LINE.some((other) => other === name))
      .map((name) => [camelCase(name), name]),
  );
  const values: RawValues = {};
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const name = names.get(key);
    if (name === undefined) {
      if (COMMAND_LINE.some((other) => camelCase(other) === key))
        throw usage(`vision has no option "${key}": it is a flag of the command line only`);
      throw usage(`vision has no option "${key}"`, didYouMean(key, [...names.keys()]));
    }
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (items.length === 0) throw usage(`${key} is empty`);
    values[name] = items.map((item) => textOf(name, item));
  }
  return values;
}

function textOf(name: FlagName, value: unknown): string {
  const { value: kind } = flagSpec(name);
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw usage(`${camelCase(name)} is not a valid Date`);
  if (value instanceof Date) return kind === 'DATE' ? value.toISOString().slice(0, 10) : value.toISOString();
  if (typeof value === 'number') return kind === 'TIME' || kind === 'UNTIL' ? `${value}ms` : String(value);
  if (typeof value === 'string' || typeof value === 'boolean') return String(value);
  throw usage(`${camelCase(name)} is neither a text, a number, a Date, true nor false`);
}

function observerOf({ onPlan, onWarning }: VisionHooks): Observer {
  return {
    ...SILENT_OBSERVER,
    announce: (plan) => onPlan?.(plan),
    warn: (message) => onWarning?.(nameOptions(message, camelCase)),
  };
}
