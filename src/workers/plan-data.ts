/** The data of a job that adds jobs: a download as options, whose days and symbols are chosen when a worker takes the job. */
import { createHash } from 'node:crypto';
import { usage } from '../model/errors.js';
import { isSwitch, optionName } from '../options/flags.js';
import type { FlagName } from '../options/flags.js';
import { resolveOptions } from '../options/resolve.js';
import type { ExchangeWords, RawLayer, RawValues, Resolved } from '../options/resolve.js';
import { isList } from '../options/symbols.js';
import { shellWord } from '../text/printable.js';
import { isRecord, JOB_FLAGS, JOB_VERBS, layersWithout, parseOptions, PLAN_VERSION } from './job-data.js';
import type { JobVerb } from './job-data.js';

/** Options that decide how the jobs are added. */
const ADDING: readonly FlagName[] = ['priority', 'max-waiting'];

/** Options that decide which jobs are added. All others are those of the worker. */
const PLAN_FLAGS: readonly FlagName[] = [
  ...JOB_FLAGS,
  'quote',
  'skip-unknown',
  'shard',
  'days',
  'months',
  ...ADDING,
];

export interface PlanData {
  readonly v: number;
  readonly plan: JobVerb;
  readonly options: RawValues;
}

/** `resolved`: the options of an enqueue command. `symbols`: names, patterns and exclusions, without lists in files. */
export function planData(
  verb: JobVerb,
  { options, texts }: Pick<Resolved, 'options' | 'texts'>,
  decided: { readonly symbols: readonly string[]; readonly out: string },
): PlanData {
  const kept: RawValues = {};
  // The same values in another form, like a repeated flag, make the same schedule.
  for (const name of PLAN_FLAGS) {
    const given = texts[name];
    if (given === undefined) continue;
    if (!isSwitch(name)) kept[name] = [given.join(',')];
    else if (options[optionName(name)] === true) kept[name] = ['true'];
  }
  return { v: PLAN_VERSION, plan: verb, options: { ...kept, symbols: decided.symbols, out: [decided.out] } };
}

/** The name of a schedule: the same for the same download, whatever its times. */
export function planId({ plan, options }: PlanData): string {
  const decisive = Object.entries(options)
    .filter(([name]) => !ADDING.includes(name as FlagName))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  const digest = createHash('sha256').update(JSON.stringify(decisive)).digest('hex');
  return `${plan}~${digest.slice(0, 12)}`;
}

/** The download as the words after `cryptodl enqueue`. */
export function planCommand({ plan, options }: PlanData): string {
  const words = Object.entries(options).map(([name, texts]) =>
    isSwitch(name as FlagName) ? `--${name}` : `--${name} ${shellWord(texts.join(','))}`,
  );
  return [plan, ...words].join(' ');
}

export function isPlan(data: unknown): boolean {
  return isRecord(data) && data['v'] === PLAN_VERSION;
}

/** The checked data. Throws a usage error for data that this program has not made. */
export function parsePlan(data: unknown): PlanData {
  if (!isRecord(data) || data['v'] !== PLAN_VERSION)
    throw usage('the data of the job is not that of cryptodl');
  const plan = JOB_VERBS.find((known) => known === data['plan']);
  if (plan === undefined) throw usage('the job has no verb vision or metrics');
  const options = parseOptions(data['options'], PLAN_FLAGS);
  const { symbols = [], out } = options;
  if (out?.length !== 1) throw usage('the job does not have exactly one value of --out');
  const words = symbols.flatMap((text) => text.split(',')).map((word) => word.trim());
  if (words.length === 0) throw usage('the job does not have --symbols');
  // A list (`@FILE`) or a path would let a job look at files of the worker.
  if (words.some((word) => isList(word) || /[/\\]/.test(word)))
    throw usage('the symbols of the job are not names or patterns');
  return { v: PLAN_VERSION, plan, options };
}

/** The options of the download, and those that decide how its jobs are added, at a time. Throws usage errors. */
export function resolvePlan(
  { plan, options }: PlanData,
  nowMs: number,
  workerLayers: readonly RawLayer[],
  exchange: ExchangeWords,
): { readonly ofVerb: Resolved; readonly adding: Resolved['options'] } {
  const values = { ...options, now: [new Date(nowMs).toISOString()] };
  const layer: RawLayer = { origin: 'job', values, nameOf: (name) => `--${name} of the schedule` };
  const layers = [layer, ...layersWithout(workerLayers, PLAN_FLAGS)];
  return {
    ofVerb: resolveOptions(plan, layers, exchange),
    adding: resolveOptions('enqueue', layers, exchange).options,
  };
}
