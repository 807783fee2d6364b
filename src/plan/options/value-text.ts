/** The values of options as text that flags, variables and keys of files take, except for secret addresses, and given flags for the next command. */
import { bytesValue, durationValue } from '../../model/units.js';
import { hiddenAddress, endpointText } from './addresses.js';
import type { FlagSpec } from './flag-spec.js';
import { flagSpec } from './flags.js';
import type { FlagName, Options } from './flags.js';
import type { Resolved } from './resolve.js';
import { flagsOf } from './verb-spec.js';
import type { VerbSpec } from './verb-spec.js';

type Value = Exclude<Options[keyof Options], undefined>;
type List = Extract<Value, readonly unknown[]>;

/** Addresses with a secret: each program that has the path can send messages in the name of the user; that of Redis has its password. */
export const SECRET_ADDRESSES: ReadonlySet<string> = new Set<FlagName>(['ping', 'alert-webhook', 'redis']);

/** The value for people, who may pass the text on. It has only the host of a secret address, and is then no valid value. */
export function sharedText(name: FlagName, value: Value): string {
  const text =
    typeof value === 'number'
      ? numberText(name, value)
      : [value]
          .flat()
          .map((item) => itemText(item as Item))
          .join(',');
  return SECRET_ADDRESSES.has(name) ? hiddenAddress(text) : text;
}

function numberText(name: FlagName, value: number): string {
  const { unit, value: kind } = flagSpec(name);
  if (kind === 'ISO') return new Date(value).toISOString();
  return unit === undefined ? String(value) : WITH_UNIT[unit](value);
}

const WITH_UNIT: Readonly<Record<NonNullable<FlagSpec['unit']>, (value: number) => string>> = {
  Ms: durationValue,
  Bytes: bytesValue,
  BytesPerSecond: bytesValue,
  Minutes: (minutes) => new Date(minutes * 60_000).toISOString().slice(11, 16),
  Percent: String,
};

type Item = Exclude<Value, List> | List[number];

function itemText(value: Item): string {
  if (typeof value !== 'object') return String(value);
  if ('text' in value) return value.text;
  if ('port' in value) return endpointText(value);
  return value.kind === 'fixed' ? String(value.limit) : `auto:${value.max}`;
}

/** The given flags of these names that the verb takes, without those of the environment: the next command has them from there. */
export function givenWords(
  { texts, origins }: Resolved,
  verb: VerbSpec,
  names: readonly FlagName[],
): string[] {
  const known = flagsOf(verb);
  return names.flatMap((name) => {
    const values = texts[name];
    if (values === undefined || origins[name] === 'environment' || !known.includes(name)) return [];
    // For a flag that takes one value, the last one counts.
    const given = flagSpec(name).list === undefined ? values.slice(-1) : values;
    return [`--${name}`, given.join(',')];
  });
}
