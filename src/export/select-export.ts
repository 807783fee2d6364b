/** The series of an export, in groups, and the folder of its files. */
import { refuseFile } from '../lake/layout.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import type { Resolved } from '../options/resolve.js';
import type { VerbRequest } from '../options/verb-request.js';
import { filterHeldSeries, readVerbLake, selectGiven } from '../select/held-series.js';
import type { VerbLake } from '../select/held-series.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { isAll } from '../select/select-datasets.js';
import { absolutePath } from '../text/printable.js';
import type { Engine } from './export-file.js';

export interface ExportSelection extends VerbLake {
  readonly selected: readonly Series[];
  /** Why folders of series are left out: links, and files without a manifest. They were warned of. */
  readonly unread: readonly string[];
}

/** The series that flags select and that the engine has files for. Throws usage errors, also if there is none. */
export async function selectExport(
  request: VerbRequest,
  { name, datasets, onlyNamed, anyInterval }: Pick<Engine, 'name' | 'datasets' | 'onlyNamed' | 'anyInterval'>,
): Promise<ExportSelection> {
  const { resolved, observer } = request;
  const { options, origins } = resolved;
  const unread: string[] = [];
  const lake = await readVerbLake(request, (message) => {
    unread.push(message);
    observer.warn(message);
  });
  const { held } = lake;
  const found = await selectGiven(held, request, anyInterval);
  const hasIndex = datasets.includes(INDEX);
  const chosen = [...found, ...(hasIndex ? indexesOf(found, held, resolved) : [])];
  const named = origins.dataset === 'default' || isAll(options.dataset) ? undefined : options.dataset;
  const unknown = named?.find((dataset) => datasets.length > 0 && !datasets.includes(dataset));
  if (unknown !== undefined)
    throw usage(
      `export ${name} has no files for ${unknown}; it has files for ${datasets.join(', ')}`,
      'choose one of these with --dataset, or leave it out',
    );
  const takes = ({ dataset }: Series): boolean =>
    datasets.length === 0 ||
    (datasets.includes(dataset) && (named !== undefined || !onlyNamed.includes(dataset)));
  const selected = chosen.filter(takes);
  if (selected.length > 0) return { ...lake, selected, unread };
  const others = [...new Set(chosen.map(({ dataset }) => dataset))];
  throw usage(
    `export ${name} takes ${datasets.filter((dataset) => !onlyNamed.includes(dataset)).join(', ')}; ${options.out} holds ${others.join(', ')} of these symbols`,
    onlyNamed.some((dataset) => others.includes(dataset))
      ? `for trades, name them: --dataset ${onlyNamed.find((dataset) => others.includes(dataset)) ?? ''}`
      : undefined,
  );
}

/** The index prices of the pairs of these contracts: BTCUSD of BTCUSD_PERP. --symbols names contracts, so it leaves them out. */
function indexesOf(chosen: readonly Series[], held: readonly Series[], resolved: Resolved): Series[] {
  const options = { ...resolved.options, quote: undefined };
  const pairs = new Set(chosen.map((series) => pairName(series)));
  const others = held.filter(
    (series) => isIndex(series) && pairs.has(pairName(series)) && !chosen.includes(series),
  );
  if (others.length === 0) return [];
  const all = filterHeldSeries(held, { ...resolved, options }, undefined, () => undefined);
  return others.filter((series) => all.includes(series));
}

const INDEX = 'indexPriceKlines';

function isIndex({ dataset }: Series): boolean {
  return dataset === INDEX;
}

/** `cm BTCUSD`, the pair of BTCUSD_PERP and BTCUSD_240329. */
function pairName({ market, symbol }: Series): string {
  return `${market} ${symbol.replace(/_.*/, '')}`;
}

/** In the order of the lake; in each group, bars come last. */
export function groupsOf(selected: readonly Series[], groupBy: Engine['groupBy']): Series[][] {
  const groups = new Map<string, Series[]>();
  for (const series of selected) {
    const name = groupBy === 'dataset' ? seriesName({ ...series, symbol: '' }) : pairName(series);
    groups.set(name, [...(groups.get(name) ?? []), series]);
  }
  return [...groups.values()].map((group) => [
    ...group.filter(({ dataset }) => dataset !== 'bars'),
    ...group.filter(({ dataset }) => dataset === 'bars'),
  ]);
}

/** The absolute path of the target. Throws usage errors for a missing --target, for a file, and for a folder in the lake. */
export async function targetFolder(
  engine: string,
  { source, resolved, surroundings }: VerbRequest,
): Promise<string> {
  const { target, out } = resolved.options;
  if (target === undefined)
    throw usage(
      `export ${engine} needs --target, the folder for its files; --out is the lake`,
      `for example --target ${exampleTarget(engine)}`,
    );
  if (/^s3:/i.test(target))
    throw usage(
      `--target ${target}: export writes to local folders only`,
      'copy the folder into the bucket afterwards',
    );
  const path = absolutePath(target, surroundings.home);
  refuseFile(path, '--target');
  await refuseInLake(path, absolutePath(out, surroundings.home), source.name);
  return path;
}

/** A folder for the files of an engine, for corrected lines. */
function exampleTarget(engine: string): string {
  return engine === 'freqtrade' ? 'user_data/data/binance' : engine;
}
