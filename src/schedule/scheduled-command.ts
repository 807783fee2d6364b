/** Rewrites a command line so that it works under cron: without working directory, environment and terminal. */
import { resolve } from 'node:path';
import { wordsOf } from '../cli/command-words.js';
import type { Word } from '../cli/command-words.js';
import { VERB_TEXTS } from '../cli/verbs.js';
import type { Io } from '../model/io.js';
import { folderOf, homeOf } from '../options/environment.js';
import { environmentName, FLAG_NAMES, flagsOf, flagSpec, isSwitch } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { SECRET_ADDRESSES } from '../options/value-text.js';
import { absolutePath, withoutPassword } from '../text/printable.js';

/**
 * The words of the command with absolute paths, and with flags for options that came from environment variables. --out,
 * --state-dir and --quiet are added, because cron has another environment and no terminal. Flags of `secretFlags` are left out.
 */
export function scheduledWords(
  argv: readonly string[],
  verb: Verb,
  { resolved, io }: { readonly resolved: Resolved; readonly io: Io },
): string[] {
  const home = homeOf(io.environment);
  const stateHome = folderOf(io.environment['XDG_STATE_HOME']);
  const { options, origins, texts } = resolved;
  const known = flagsOf(verb);
  const secret = secretFlags(verb, resolved);
  const words = wordsOf(argv, verb)
    .filter(({ flag }) => flag === undefined || !secret.includes(flag))
    .map((word) => absoluteWord(word, verb, home));
  const fromEnvironment = known
    // A scheduled run takes the time from the clock, not from the environment of this command.
    .filter((name) => origins[name] === 'environment' && name !== 'now' && !secret.includes(name))
    .flatMap((name) => asFlag(name, absoluteValue(name, (texts[name] ?? []).join(','), home)));
  const more: string[] = [];
  // With `run`, this flag would replace the `out` of each job.
  // A worker without it also does the jobs for lakes in buckets.
  if (known.includes('out') && origins.out === 'default' && verb !== 'run' && verb !== 'worker')
    more.push('--out', absolutePath(options.out, home));
  if (known.includes('state-dir') && options.stateDir === undefined && stateHome !== undefined)
    more.push('--state-dir', resolve(stateHome, 'cryptodl'));
  if (known.includes('quiet') && !options.quiet && !options.json) more.push('--quiet');
  return [...words, ...fromEnvironment, ...more];
}

/** Flags with a password that does not come from a config file. Other users may read a crontab or a unit. */
export function secretFlags(verb: Verb, { origins, texts }: Resolved): FlagName[] {
  return flagsOf(verb).filter(
    (name) =>
      ['flag', 'environment'].includes(origins[name]) &&
      texts[name]?.some((text) => withoutPassword(text) !== text),
  );
}

/** Flags of the scheduled command with a secret address, which is printed: the scheduled run needs it. */
export function flagsWithSecretAddress(verb: Verb, resolved: Resolved): FlagName[] {
  const leftOut = secretFlags(verb, resolved);
  return flagsOf(verb).filter(
    (name) =>
      SECRET_ADDRESSES.has(name) &&
      ['flag', 'environment'].includes(resolved.origins[name]) &&
      !leftOut.includes(name),
  );
}

/** Environment variables that affect the command here, but that cron does not set. */
export function lostVariables(verb: Verb, { resolved, io }: { resolved: Resolved; io: Io }): string[] {
  const known = flagsOf(verb);
  const twins = verb === 'run' ? FLAG_NAMES.filter((name) => !known.includes(name)).map(environmentName) : [];
  const proxies =
    known.includes('proxy') && resolved.options.proxy === undefined
      ? ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy']
      : [];
  return [...twins, ...proxies].filter((name) => (io.environment[name] ?? '') !== '');
}

function asFlag(name: FlagName, value: string): string[] {
  if (isSwitch(name)) return ['1', 'true', 'yes', 'on'].includes(value) ? [`--${name}`] : [];
  return value.startsWith('-') ? [`--${name}=${value}`] : [`--${name}`, value];
}

/** The address of a lake or a report in a bucket. */
const IN_BUCKET = /^s3:/i;
const PATH_OPERANDS: readonly (string | undefined)[] = ['<file>', '<report>', '<directory>', '<lake...>'];

function absoluteWord({ text, kind, flag }: Word, verb: Verb, home: string | undefined): string {
  if (kind === 'operand')
    return PATH_OPERANDS.includes(VERB_TEXTS[verb].operand) && !IN_BUCKET.test(text) ? resolve(text) : text;
  if (flag === undefined) return text;
  if (kind === 'value') return absoluteValue(flag, text, home);
  const [name = '', value] = text.split(/=(.*)/s);
  return value === undefined ? text : `${name}=${absoluteValue(flag, value, home)}`;
}

function absoluteValue(name: FlagName, text: string, home: string | undefined): string {
  const { value } = flagSpec(name);
  if (IN_BUCKET.test(text)) return text;
  if (value === 'DIR' || value === 'FILE') return absolutePath(text, home);
  if (name !== 'symbols' && name !== 'proxy') return text;
  return text
    .split(',')
    .map((item) => (item.trim().startsWith('@') ? `@${resolve(item.trim().slice(1))}` : item))
    .join(',');
}
