/** The shape of a row of the flag table. */
import * as parse from './parsers.js';
import type { Parse } from './parsers.js';
import type { RetryPreset } from '../../exchange/facts.js';

/** The groups of flags in `--help-all`. `--help` shows the flags of the groups after How under How. */
export const GROUPS = ['What', 'When', 'Where', 'How', 'Safety', 'Network', 'Messages', 'Options'] as const;

export interface DefaultSources {
  readonly preset: RetryPreset;
  readonly archiveUrl: string;
  readonly hosts: Readonly<Record<'archive' | 'origin' | 'listing', string>>;
}

export interface FlagSpec {
  readonly group: (typeof GROUPS)[number];
  readonly short?: string;
  /** The help text, without the default. `--help` shows the part before the first semicolon. */
  readonly doc: string;
  /** The name of the value in help, for example `N`; switches have none. */
  readonly value?: string;
  /**
   * Takes several values, separated by commas or in repeated flags. `comma`: each value is parsed on its own; `joined`: all values
   * are parsed as one text with commas.
   */
  readonly list?: 'comma' | 'joined';
  readonly parse: Parse<unknown>;
  /** The unit of the parsed number. The name of the option ends with it. */
  readonly unit?: 'Ms' | 'Minutes' | 'Bytes' | 'BytesPerSecond' | 'Percent';
  /** A config file may hold a map: `limits: { archive: 100/s }` is `archive=100/s`. */
  readonly isMap?: boolean;
  /** All valid values, for completion and documents, if they are a fixed list. */
  readonly choices?: readonly string[];
  /** Other names that work, mostly those of other tools. Help does not show them. */
  readonly aka?: readonly string[];
  /** The default as text for `parse`, so that help and value cannot differ. */
  readonly default?: string;
  /** The default in words, if it depends on other options or on the environment. */
  readonly unset?: string;
  /** The default, if other options and the exchange decide it. An option with a value, but with neither `default` nor `derive`, may be undefined. */
  readonly derive?: (from: DefaultSources) => unknown;
  /** `retry` takes the value of the run that it repeats. */
  readonly isCarried?: boolean;
}

/** A flag without a value is a switch. */
const SWITCH = { parse: parse.flag } as const;

/** The fields that a row of a section may leave out: those of the section, and those of a switch. The text of a switch stands for its row. */
type Row<Common> =
  | string
  | (Omit<FlagSpec, 'value' | 'parse' | keyof Common> &
      Partial<Pick<FlagSpec, keyof Common & keyof FlagSpec>> &
      (
        | (Pick<FlagSpec, 'parse'> & { readonly value: string })
        | { readonly value?: never; readonly parse?: never }
      ));

type Merged<Common, Own> = Own extends string
  ? typeof SWITCH & Common & { readonly doc: string }
  : Omit<typeof SWITCH & Common, keyof Own> & Own;

/** Refuses a misspelt field. */
type OnlyFields<Own> = Own extends string
  ? unknown
  : Readonly<Record<Exclude<keyof Own, keyof FlagSpec>, never>>;

/** Makes rows of the flag table. A field that a row leaves out is that of its section. */
export function section<const Common extends Partial<FlagSpec>>(common: Common) {
  return <const Rows extends Readonly<Record<string, Row<Common>>>>(
    rows: Rows & { readonly [Name in keyof Rows]: OnlyFields<Rows[Name]> },
  ) => {
    const merged: Readonly<Record<string, unknown>> = Object.fromEntries(
      Object.entries<Row<Common>>(rows).map(([name, row]) => [
        name,
        { ...SWITCH, ...common, ...(typeof row === 'string' ? { doc: row } : row) },
      ]),
    );
    return merged as { readonly [Name in keyof Rows]: Merged<Common, Rows[Name]> };
  };
}

/** Returns the function that makes rows of one kind of values: of a text for help, and of the fields that differ from those of the kind. */
function kind<const Kind extends Partial<FlagSpec>>(common: Kind) {
  return <const Own extends Partial<FlagSpec> = object>(
    doc: string,
    own?: Own & Partial<FlagSpec>,
  ): Omit<Kind, keyof Own> & Own & { readonly doc: string } => ({ ...common, doc, ...(own as Own) });
}

/** Makes rows of values that this parser reads. `value`: their name in help. */
export const takes = <P extends Parse<unknown>>(value: string, parser: P) => kind({ value, parse: parser });
export const LIST = { value: 'LIST', list: 'comma' } as const;
export const words = kind({ ...LIST, parse: parse.text });
export const takesDuration = kind({ value: 'TIME', parse: parse.duration, unit: 'Ms' });
export const takesTimeout = kind({ value: 'TIME', parse: parse.timeout, unit: 'Ms' });
export const count = takes('N', parse.integer(1));
export const file = takes('FILE', parse.text);
export const folder = takes('DIR', parse.text);

/** `others`: other names of the choices. */
export const oneOf = <const T extends string>(
  value: string,
  choices: readonly T[],
  others?: Parameters<typeof parse.choice>[1],
) => kind({ value, parse: parse.choice(choices, others), choices });
