/** Settings that a run would ignore: those that the format of the files does not have, and one of --redis and --egress-group without the other. */
import { usage } from '../model/errors.js';
import type { Format } from '../model/task.js';
import type { Verb } from './flag-spec.js';
import type { FlagName, Options } from './flags.js';

interface IdleSetting {
  readonly name: Extract<FlagName, 'partition' | 'numbers' | 'timestamps'>;
  /** The values without effect. Other values say what the format has anyway, or change its files. */
  readonly values: readonly string[];
  readonly why: string;
  readonly hint: string;
}

/** Resolved options and their sources. */
interface Settings {
  readonly options: Pick<Options, 'format' | IdleSetting['name']>;
  readonly origins: Readonly<Record<FlagName, string>>;
  /** The source of a value, by identity. */
  readonly layerOf: (name: FlagName) => unknown;
  /** The name of the flag, the environment variable or the key. */
  readonly nameOf: (name: FlagName) => string;
}

const AS_THEY_ARE = 'zip keeps the files of the archive as they are';

const IDLE: Readonly<Record<Format, readonly IdleSetting[]>> = {
  parquet: [
    {
      name: 'timestamps',
      values: ['ms', 'iso'],
      why: 'Parquet stores times as timestamps, without a unit or text form',
      hint: 'add --format csv, or leave --timestamps out',
    },
  ],
  csv: [
    {
      name: 'numbers',
      values: ['double'],
      why: 'CSV keeps every published digit',
      hint: 'leave --numbers out, or choose --format parquet',
    },
  ],
  zip: [
    {
      name: 'partition',
      values: ['day', 'month'],
      why: AS_THEY_ARE,
      hint: '--cadence daily or --cadence monthly chooses the files; leave --partition out',
    },
    {
      name: 'numbers',
      values: ['double'],
      why: AS_THEY_ARE,
      hint: 'leave --numbers out, or choose --format parquet',
    },
    {
      name: 'timestamps',
      values: ['us', 'ms', 'iso', 'utc'],
      why: AS_THEY_ARE,
      hint: 'leave --timestamps out, or choose --format parquet or csv',
    },
  ],
};

/**
 * Throws a usage error for a setting that the format does not have, if the setting is a flag, belongs to one job, or comes from the
 * source of the format. Other sources are shared by commands with different formats, so their settings are left unused.
 */
export function refuseIdleSettings({ options, origins, layerOf, nameOf }: Settings): void {
  for (const { name, values, why, hint } of IDLE[options.format]) {
    const value = options[name];
    const isOwn = ['flag', 'job'].includes(origins[name]) || layerOf(name) === layerOf('format');
    if (origins[name] === 'default' || !isOwn || !values.includes(value)) continue;
    const isCsvMeant = name === 'timestamps' && origins.format === 'default';
    throw usage(`${nameOf(name)} ${value} changes nothing with --format ${options.format}: ${why}`, hint, {
      flags: isCsvMeant ? { format: 'csv' } : { [name]: null },
    });
  }
}

/** Verbs that use Redis also without an egress group; `retry` does without a report. */
export const USES_REDIS: ReadonlySet<Verb> = new Set(['enqueue', 'worker', 'status', 'retry', 'doctor']);

interface EgressSettings extends Pick<Settings, 'nameOf' | 'origins'> {
  readonly options: Pick<Options, 'redis' | 'egressGroup'>;
}

/**
 * For commands that use Redis only for an egress group. Throws a usage error for one of the two settings that is a flag or belongs to one
 * job. Other sources are shared with commands of a queue, so a lone setting is left unused there.
 */
export function refuseLoneEgress({ options, origins, nameOf }: EgressSettings): void {
  const isOwn = (name: FlagName): boolean => ['flag', 'job'].includes(origins[name]);
  if (options.egressGroup === undefined && options.redis !== undefined && isOwn('redis'))
    throw usage(
      `${nameOf('redis')} changes nothing without --egress-group: Redis has only the limits of a group, and the queue of enqueue and worker`,
      'add --egress-group NAME, the same on all machines behind one public address, or leave --redis out',
      { flags: { redis: null } },
    );
  if (options.redis === undefined && isOwn('egress-group') && options.egressGroup !== undefined)
    throw usage(
      `${nameOf('egress-group')} needs --redis, where its programs share their limits`,
      'add --redis redis://HOST:6379',
    );
}
