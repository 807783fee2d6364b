/** The words of a scheduled command, which works under cron: without working directory, environment and terminal. */
import { resolve } from 'node:path';
import { VERB_TEXTS } from '../cli/verbs.js';
import type { Invocation } from '../cli/program.js';
import type { Io } from '../model/io.js';
import { folderOf, homeOf } from '../options/environment.js';
import { flagsOf, flagSpec, isSwitch } from '../options/flags.js';
import type { Verb } from '../options/flag-spec.js';
import type { FlagName } from '../options/flags.js';
import type { Resolved } from '../options/resolve.js';
import { absolutePath, withoutPassword } from '../text/printable.js';

/**
 * The verb, its operands and a flag for each option of the command line and of the environment, with absolute paths. --out, --state-dir and
 * --quiet are added, because cron has another environment and no terminal. Flags of `secretFlags` are left out.
 */
export function scheduledWords(
  { verb, operand }: Invocation,
  { resolved, io }: { readonly resolved: Resolved; readonly io: Io },
): string[] {
  const home = homeOf(io.environment);
  const stateHome = folderOf(io.environment['XDG_STATE_HOME']);
  const { options, origins, texts } = resolved;
  const known = flagsOf(verb);
  const secret = secretFlags(verb, resolved);
  const flags = givenFlags(verb, resolved)
    // A scheduled run takes the time from the clock, not from the environment of this command.
    .filter((name) => !secret.includes(name) && !(name === 'now' && origins.now === 'environment'))
    .flatMap((name) => (texts[name] ?? []).flatMap((text) => asFlag(name, absoluteValue(name, text, home))));
  const more: string[] = [];
  // With `run`, this flag would replace the `out` of each job.
  // A worker without it also does the jobs for lakes in buckets.
  if (known.includes('out') && origins.out === 'default' && verb !== 'run' && verb !== 'worker')
    more.push('--out', absolutePath(options.out, home));
  if (known.includes('state-dir') && options.stateDir === undefined && stateHome !== undefined)
    more.push('--state-dir', resolve(stateHome, 'cryptodl'));
  if (known.includes('quiet') && !options.quiet && !options.json) more.push('--quiet');
  const operands = operand === undefined ? [] : [absoluteOperand(verb, operand)];
  return [verb, ...operands, ...flags, ...more];
}

/** The flags with a value from the command line or the environment. A config file is named by its path. */
export function givenFlags(verb: Verb, { origins }: Resolved): FlagName[] {
  return flagsOf(verb).filter((name) => ['flag', 'environment'].includes(origins[name]));
}

/** Given flags with a password. Other users may read a crontab or a unit. */
export function secretFlags(verb: Verb, resolved: Resolved): FlagName[] {
  return givenFlags(verb, resolved).filter((name) =>
    resolved.texts[name]?.some((text) => withoutPassword(text) !== text),
  );
}

function asFlag(name: FlagName, value: string): string[] {
  if (isSwitch(name)) return ['1', 'true', 'yes', 'on'].includes(value) ? [`--${name}`] : [];
  return value.startsWith('-') ? [`--${name}=${value}`] : [`--${name}`, value];
}

/** The address of a lake or a report in a bucket. */
const IN_BUCKET = /^s3:/i;
const PATH_OPERANDS: readonly (string | undefined)[] = ['<file>', '[report]', '<directory>'];

function absoluteOperand(verb: Verb, text: string): string {
  return PATH_OPERANDS.includes(VERB_TEXTS[verb].operand) && !IN_BUCKET.test(text) ? resolve(text) : text;
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
