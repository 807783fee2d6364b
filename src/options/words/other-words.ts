/** Values of other tools that are not valid here, with the nearest valid value. */

/** A word that is no valid value, with a note and the nearest valid value, if there is one. */
export type OtherWords<T extends string> = Readonly<
  Record<string, { readonly note: string; readonly value?: T }>
>;

const NEAR_PARQUET = {
  value: 'parquet',
  note: 'parquet is the nearest: pandas, Polars and DuckDB read it',
} as const;
const NEAR_CSV = { value: 'csv', note: 'csv is the nearest: spreadsheets read it' } as const;
const NO_JSON = { note: 'rows of the lake are printed as JSON by cryptodl sql --json' } as const;

/** Formats of other tools. */
export const OTHER_FORMATS: OtherWords<'parquet' | 'csv'> = {
  pq: { value: 'parquet', note: 'did you mean parquet?' },
  feather: NEAR_PARQUET,
  arrow: NEAR_PARQUET,
  hdf5: NEAR_PARQUET,
  h5: NEAR_PARQUET,
  tsv: NEAR_CSV,
  xlsx: NEAR_CSV,
  excel: NEAR_CSV,
  json: NO_JSON,
  jsonl: NO_JSON,
  ndjson: NO_JSON,
};

const TIME_UNITS = { note: 'the units are us and ms; iso and utc are other forms' } as const;

/** Units of time that no form of timestamps has. */
export const OTHER_TIMESTAMPS: OtherWords<'us' | 'ms' | 'iso' | 'utc'> = {
  s: TIME_UNITS,
  sec: TIME_UNITS,
  seconds: TIME_UNITS,
  ns: TIME_UNITS,
};

export const OTHER_MARKETS: OtherWords<string> = {
  usdt: { value: 'um', note: 'um has the USD-margined futures' },
  margin: { value: 'spot', note: 'margin orders trade on the spot market' },
};
