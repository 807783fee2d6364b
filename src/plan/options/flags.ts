/** The flag table: parsing, help, environment variables, config keys and --print-options are made from it. */
import type { DefaultSources, FlagSpec } from './flag-spec.js';
import { LAKE_FLAGS, SAFETY_FLAGS } from './lake-flags.js';
import { MESSAGE_FLAGS } from './message-flags.js';
import { NETWORK_FLAGS } from './network-flags.js';
import type { Parse } from './parsers.js';
import { OUTPUT_FLAGS, QUEUE_FLAGS, SERVER_FLAGS, UNIVERSE_FLAGS } from './verb-flags.js';
import { SELECTION_FLAGS, TIME_FLAGS } from './selection-flags.js';

const FLAGS = {
  ...SELECTION_FLAGS,
  ...TIME_FLAGS,
  ...OUTPUT_FLAGS,
  ...UNIVERSE_FLAGS,
  ...LAKE_FLAGS,
  ...SAFETY_FLAGS,
  ...QUEUE_FLAGS,
  ...NETWORK_FLAGS,
  ...SERVER_FLAGS,
  ...MESSAGE_FLAGS,
} as const;

type Flags = typeof FLAGS;
export type FlagName = keyof Flags;
export const FLAG_NAMES = Object.keys(FLAGS) as FlagName[];

export type FlagNameOf<
  V extends { readonly flags: readonly FlagName[]; readonly moreFlags?: readonly FlagName[] },
> = V['flags'][number] | NonNullable<V['moreFlags']>[number];

export type FlagNameIn<Group extends FlagSpec['group']> = {
  [Name in FlagName]: Flags[Name]['group'] extends Group ? Name : never;
}[FlagName];

export type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

type WithUnit<Name extends string, Unit extends string> = Name extends `${string}${Unit}`
  ? Name
  : `${Name}${Unit}`;

/** `max-wait` → `maxWaitMs`. */
type OptionName<Name extends FlagName> = Flags[Name] extends {
  readonly unit: infer Unit extends string;
}
  ? WithUnit<CamelCase<Name>, Unit>
  : CamelCase<Name>;

export type FlagValue<Name extends FlagName> = Flags[Name] extends { readonly list: 'comma' }
  ? readonly ReturnType<Flags[Name]['parse']>[]
  : ReturnType<Flags[Name]['parse']>;

/** The final values of these flags, frozen: undefined only where there is no default. */
export type Options<Names extends FlagName = FlagName> = {
  readonly [Name in Names as OptionName<Name>]: Flags[Name] extends
    { readonly default: string } | { readonly parse: Parse<boolean> }
    ? FlagValue<Name>
    : FlagValue<Name> | Derived<Name>;
};

type Derived<Name extends FlagName> = Flags[Name] extends {
  readonly derive: (from: DefaultSources) => infer Value;
}
  ? Value
  : undefined;

export const flagSpec = (name: FlagName): FlagSpec => FLAGS[name];

/** `dry-run` → `CRYPTODL_DRY_RUN`. */
export const environmentName = (name: FlagName): string =>
  `CRYPTODL_${name.toUpperCase().replaceAll('-', '_')}`;

export const isSwitch = (name: FlagName): boolean => flagSpec(name).value === undefined;

/** `dry-run` → `dryRun`. */
export const camelCase = (name: string): string =>
  name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

/** `max-wait` → `maxWaitMs`: the name of the flag and the unit of its number. */
export function optionName(name: FlagName): keyof Options {
  const plain = camelCase(name);
  const { unit = '' } = flagSpec(name);
  return (plain.endsWith(unit) ? plain : `${plain}${unit}`) as keyof Options;
}
