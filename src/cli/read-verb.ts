/** Reads the verb of a command line: its name, another name, or no verb at all for a download. */
import { existsSync } from 'node:fs';
import { usage } from '../model/errors.js';
import { VERBS } from '../options/flag-spec.js';
import type { Verb } from '../options/flag-spec.js';
import { didYouMean } from '../text/did-you-mean.js';
import { VERB_TEXTS } from './verbs.js';

/** Commands of other tools that mean a verb with further words. Other names of a verb alone are in `aka` of the table of verbs. */
const COMMANDS: Readonly<Record<string, readonly [Verb, ...(readonly string[])]>> = {
  'fetch-trades': ['vision', '--dataset', 'trades'],
  funding: ['metrics', '--dataset', 'fundingRate'],
  'fetch-funding-rate-history': ['metrics', '--dataset', 'fundingRate'],
  openinterest: ['metrics', '--dataset', 'openInterestHist'],
  oi: ['metrics', '--dataset', 'openInterestHist'],
  'list-pairs': ['list', 'symbols'],
  'list-markets': ['list', 'markets'],
  'list-data': ['coverage'],
};

/** The first word of a download without a verb: a flag, or a symbol like BTCUSDT or BTC/USDT. */
const DOWNLOAD = /^-.|^[\p{Lu}\p{Lo}\d*]{5,}(?:_\w+)?$|^[A-Z\d]+[/-][A-Z]+/u;

export interface VerbOfLine {
  readonly verb: Verb;
  /** The words for the verb, without its name. */
  readonly words: readonly string[];
  /** Whether the line names no verb. */
  readonly isImplied: boolean;
}

/** Throws a usage error for an unknown command. */
export function readVerb(line: readonly string[]): VerbOfLine {
  const [first = '', ...rest] = line;
  const name = kebabCase(first);
  const [next = ''] = rest;
  // A run continues, so `resume vision` is `vision`. `run vision` is `vision`, unless there is such a file of jobs.
  const isEmptyWord = name === 'resume' || name === 'continue' || (name === 'run' && !existsSync(next));
  if (isEmptyWord && VERBS.some((known) => known === next)) return readVerb(rest);
  const verb = VERBS.find((known) => known === name || VERB_TEXTS[known].aka.includes(name));
  if (verb !== undefined) return { verb, words: rest, isImplied: false };
  const [other, ...words] = (Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined) ?? [];
  if (other !== undefined) return { verb: other, words: [...words, ...rest], isImplied: false };
  // `cryptodl datasets` is `cryptodl list datasets`, and `cryptodl freqtrade` is `cryptodl export freqtrade`.
  const owner = VERBS.find((known) => VERB_TEXTS[known].choices?.includes(name));
  if (owner !== undefined) return { verb: owner, words: line, isImplied: false };
  if (DOWNLOAD.test(first)) return { verb: 'vision', words: line, isImplied: true };
  if (first === '') throw usage('no command given', 'for example: cryptodl vision -s BTCUSDT -d 1');
  if (name === 'resume' || name === 'continue')
    throw usage(`"${first}" is not a command`, 'repeat the same command: it continues where it ended');
  if (/\s/.test(first)) throw usage(`"${first}" is not a command`, 'write the command without quotes');
  throw usage(`"${first}" is not a command`, didYouMean(name, VERBS) ?? 'cryptodl --help shows the commands');
}

/** `dryRun`, `dry_run` and `DRY-RUN` are `dry-run`. */
export function kebabCase(name: string): string {
  return name
    .replaceAll('_', '-')
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter}`)
    .toLowerCase();
}
