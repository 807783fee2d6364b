/** The flags that only some engines of an export read. */
import { readFile } from 'node:fs/promises';
import { errnoOf, usage } from '../model/errors.js';
import type { FlagName } from '../options/flags.js';
import type { VerbRequest } from '../options/verb-request.js';
import { parseAssets } from '../source/binance/exchange-info.js';
import type { Assets } from '../source/pairs.js';
import { intervalMs } from '../source/venue.js';
import { reasonOf } from '../text/path-faults.js';
import { absolutePath, shownPath } from '../text/printable.js';
import type { EngineSettings } from './export-file.js';

/** Flags that only one engine reads. */
const FLAGS_OF: Readonly<Partial<Record<FlagName, string>>> = {
  'mark-interval': 'freqtrade',
  'exchange-info': 'freqtrade',
  columns: 'csv',
  delimiter: 'csv',
  'time-format': 'csv',
  'one-file': 'csv',
};

/** Throws a usage error for a flag of another engine. */
export function refuseOtherFlags(engine: string, { resolved: { origins } }: VerbRequest): void {
  const names = Object.keys(FLAGS_OF) as FlagName[];
  const name = names.find((flag) => origins[flag] === 'flag' && FLAGS_OF[flag] !== engine);
  if (name !== undefined)
    throw usage(
      `--${name} is for export ${FLAGS_OF[name] ?? ''}, not for export ${engine}`,
      `leave --${name} out`,
    );
}

/** Throws usage errors. */
export async function settingsOf({ resolved, surroundings }: VerbRequest): Promise<EngineSettings> {
  const { options } = resolved;
  for (const interval of options.markInterval)
    if (!(intervalMs(interval) > 0))
      throw usage(
        `--mark-interval: "${interval}" is not an interval like 1h or 8h`,
        'for example --mark-interval 1h,8h',
      );
  return {
    markIntervals: options.markInterval,
    assets:
      options.exchangeInfo === undefined
        ? new Map<string, Assets>()
        : await readAssets(absolutePath(options.exchangeInfo, surroundings.home)),
    columns: options.columns,
    delimiter: options.delimiter,
    timeFormat: options.timeFormat,
    isOneFile: options.oneFile,
  };
}

async function readAssets(path: string): Promise<ReadonlyMap<string, Assets>> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw usage(
      `--exchange-info ${shownPath(path)} cannot be read (${reasonOf(errnoOf(error))})`,
      'name a file with an answer of exchangeInfo',
    );
  }
  const assets = parseAssets(text);
  if (assets === undefined)
    throw usage(
      `--exchange-info ${shownPath(path)} is not an answer of exchangeInfo: it has no list of symbols with baseAsset and quoteAsset`,
      'save one: curl https://fapi.binance.com/fapi/v1/exchangeInfo > exchangeInfo.json',
    );
  return assets;
}
