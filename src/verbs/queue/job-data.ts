/** The data of a job: one series with a range of days, as options of a download. Whatever a queue holds is checked like any input. */
import { createHash } from 'node:crypto';
import { isAbsolute, resolve } from 'node:path';
import { parseAsked, type AskedOrder } from '../../lake/order.js';
import type { Counts } from '../../model/counters.js';
import { usage, type CryptodlError } from '../../model/errors.js';
import { isLakeAddress } from '../../model/lake-address.js';
import type { FlagName } from '../../plan/options/flags.js';
import { resolveOptions, type RawLayer, type RawValues, type Resolved } from '../../plan/options/resolve.js';
import { isExactName } from '../../plan/options/symbols.js';
import type { VerbCall } from '../../run/verb/verb.js';
import { fieldsOf } from '../../text/json.js';
import { absolutePath } from '../../text/printable.js';

/** Raised when workers of the earlier version would do something else with the data: they fail such a job. */
const JOB_VERSION = 1;

export type JobVerb = 'vision' | 'metrics';
export const JOB_VERBS = ['vision', 'metrics'] as const satisfies readonly JobVerb[];

const OF_BOTH: readonly FlagName[] = [
  'market',
  'dataset',
  'interval',
  'symbols',
  'from',
  'to',
  'format',
  'partition',
  'numbers',
  'timestamps',
  'as-published',
  'out',
];
/** Options that decide what a job writes and where. All others are those of its worker. */
const JOB_FLAGS: Readonly<Record<JobVerb, readonly FlagName[]>> = {
  vision: [...OF_BOTH, 'fill', 'cadence', 'revisions', 'recheck-days', 'stale-checksum', 'verify'],
  metrics: [...OF_BOTH, 'include-today', 'join'],
};

/** Flags with exactly one value, like `symbols`: a job is one series, and its range is given. */
const SINGLE = ['market', 'dataset', 'from', 'to', 'out'] as const satisfies readonly FlagName[];

/** Longer texts are in no option of a job. */
export const MOST_CHARACTERS = 1000;

export interface JobData {
  readonly v: number;
  readonly verb: JobVerb;
  readonly options: RawValues;
  /** The first job of a command has the orders of all jobs. */
  readonly orders?: readonly AskedOrder[];
  /** Of a conversion: what the fetch has counted. */
  readonly counts?: Counts;
}

/** An object that could not be fetched or written. */
export interface FailedObject {
  readonly key: string;
  readonly error: CryptodlError;
}

/** The options of an enqueue command that its jobs repeat. `texts`: the given options. */
export function jobOptions(texts: RawValues): RawValues {
  const kept: RawValues = {};
  for (const name of Object.values(JOB_FLAGS).flat()) if (texts[name] !== undefined) kept[name] = texts[name];
  return kept;
}

export function jobData(verb: JobVerb, options: RawValues, orders: readonly AskedOrder[] = []): JobData {
  return { v: JOB_VERSION, verb, options, ...(orders.length > 0 && { orders }) };
}

/** The name of a job, equal for equal work: series, days, and a digest of all that changes the result. BullMQ allows no `:` in it. */
export function jobId({ verb, options, orders }: JobData): string {
  const { market, dataset, interval, symbols, from, to, ...others } = options;
  const digest = createHash('sha256')
    .update(JSON.stringify(Object.entries(others).toSorted(([a], [b]) => (a < b ? -1 : 1))))
    .update(orders === undefined ? '' : JSON.stringify(orders))
    .digest('hex');
  const parts = [verb, market, dataset, interval ?? '', symbols, from, to, digest.slice(0, 12)];
  return parts.join('~').replaceAll(':', '_');
}

/** The checked data of a job. Throws a usage error for data that this version of the program has not made. */
export function parseJob(data: unknown): JobData {
  const { v, verb: given, options, orders: asked = [] } = fieldsOf(data);
  const verb = JOB_VERBS.find((known) => known === given);
  const orders = parseAsked(asked);
  if (v !== JOB_VERSION || verb === undefined || orders === undefined || !areOptions(options, verb))
    throw usage('the data of the job are not those of this version of cryptodl', 'use the same version');
  return jobData(verb, options, orders);
}

function areOptions(value: unknown, verb: JobVerb): value is RawValues {
  const options = fieldsOf(value);
  const names: readonly string[] = JOB_FLAGS[verb];
  if (!Object.entries(options).every(([name, texts]) => names.includes(name) && isTexts(texts))) return false;
  const { symbols, ...others } = options as RawValues;
  // A name of a file (`@FILE`) or a pattern would let a job read files of the worker.
  if (symbols?.length !== 1 || !symbols.every(isExactName)) return false;
  const [out = ''] = others.out ?? [];
  if (!isLakeAddress(out) && !isAbsolute(out)) return false;
  return SINGLE.every(
    (name) => others[name]?.length === 1 && (name === 'out' || others[name][0]?.includes(',') !== true),
  );
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((text) => typeof text === 'string' && text.length <= MOST_CHARACTERS);

/** The options of a job, with those of its worker for everything that the job does not decide. Throws usage errors. */
export function resolveJob(
  { verb, options }: JobData,
  { layers, verbs, exchange }: Pick<VerbCall, 'layers' | 'verbs' | 'exchange'>,
): Resolved {
  const layer: RawLayer = { origin: 'job', values: options, nameOf: (name) => `--${name} of the job` };
  const others = layers.map((own) => {
    const values: RawValues = { ...own.values };
    for (const name of Object.values(JOB_FLAGS).flat()) delete values[name];
    return { ...own, values };
  });
  return resolveOptions(verbs[verb], [layer, ...others], exchange);
}

/** The lake of a job as its data name it: an address, or an absolute path. */
export const lakeOf = ({ options }: JobData): string => options.out?.[0] ?? '';

/** A lake as the data of jobs name it. `home`: the folder that `~` stands for. */
export const namedLake = (out: string, home: string | undefined): string =>
  isLakeAddress(out) ? out : resolve(absolutePath(out, home));

/**
 * Why the worker may not write to the lake of a job; undefined if it may. `own`: the lake of the worker. `isGiven`: its --out was
 * given. A job of the queue decides about a folder only if the worker names the same folder.
 */
export function lakeProblem(lake: string, own: string, isGiven: boolean): string | undefined {
  if (lake === own || (!isGiven && isLakeAddress(lake))) return undefined;
  return `the job is for the lake ${lake}, this worker writes to ${own}`;
}
