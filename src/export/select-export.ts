/** The series of an export, in groups, and the folder of its files. */
import { refuseFile } from '../lake/layout.js';
import { usage } from '../model/errors.js';
import { seriesName } from '../model/task.js';
import type { Series } from '../model/task.js';
import { readPatterns } from '../options/symbols.js';
import type { VerbRequest } from '../options/verb-request.js';
import { filterHeldSeries, heldSeries } from '../select/held-series.js';
import { refuseInLake } from '../select/refuse-in-lake.js';
import { isAll } from '../select/select-datasets.js';
import { absolutePath } from '../text/printable.js';
import type { Engine } from './export-file.js';

export interface ExportSelection {
  /** All series of the lake. */
  readonly held: readonly Series[];
  readonly selected: readonly Series[];
}

/** The series that flags select and that the engine has files for. Throws usage errors, also if there is none. */
export async function selectExport(
  { source, resolved, surroundings, read, observer }: VerbRequest,
  { name, datasets, onlyNamed }: Pick<Engine, 'name' | 'datasets' | 'onlyNamed'>,
): Promise<ExportSelection> {
  const { options, origins } = resolved;
  const warn = (message: string): void => {
    observer.warn(message);
  };
  const held: Series[] = [];
  for await (const series of heldSeries(absolutePath(options.out, surroundings.home), source, warn))
    held.push(series);
  const patterns = options.symbols === undefined ? undefined : await readPatterns(options.symbols, read);
  const chosen = filterHeldSeries(held, resolved, patterns, warn);
  const named = origins.dataset === 'default' || isAll(options.dataset) ? undefined : options.dataset;
  const unknown = named?.find((dataset) => datasets.length > 0 && !datasets.includes(dataset));
  if (unknown !== undefined)
    throw usage(
      `export ${name} has no files for ${unknown}; it has files for ${datasets.join(', ')}`,
      undefined,
      {
        flags: { dataset: null },
      },
    );
  const takes = ({ dataset }: Series): boolean =>
    datasets.length === 0 ||
    (datasets.includes(dataset) && (named !== undefined || !onlyNamed.includes(dataset)));
  const selected = chosen.filter(takes);
  if (selected.length > 0) return { held, selected };
  const others = [...new Set(chosen.map(({ dataset }) => dataset))];
  throw usage(
    `export ${name} takes ${datasets.filter((dataset) => !onlyNamed.includes(dataset)).join(', ')}; ${options.out} holds ${others.join(', ')} of these symbols`,
    onlyNamed.some((dataset) => others.includes(dataset))
      ? `for trades, name them: --dataset ${onlyNamed.find((dataset) => others.includes(dataset)) ?? ''}`
      : undefined,
  );
}

/** In the order of the lake. */
export function groupsOf(selected: readonly Series[], groupBy: Engine['groupBy']): Series[][] {
  const groups = new Map<string, Series[]>();
  for (const series of selected) {
    const { symbol, ...others } = series;
    const name = groupBy === 'symbol' ? `${series.market} ${symbol}` : seriesName({ ...others, symbol: '' });
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [series]);
    else group.push(series);
  }
  return [...groups.values()];
}

/** The absolute path of the target. Throws usage errors for a missing --target, for a file, and for a folder in the lake. */
export async function targetFolder(engine: string, { resolved, surroundings }: VerbRequest): Promise<string> {
  const { target, out } = resolved.options;
  if (target === undefined)
    throw usage(`export ${engine} needs --target, the folder for its files; --out is the lake`, undefined, {
      flags: { target: exampleTarget(engine) },
    });
  if (/^s3:/i.test(target))
    throw usage(
      `--target ${target}: export writes to local folders only`,
      'copy the folder into the bucket afterwards',
    );
  const path = absolutePath(target, surroundings.home);
  refuseFile(path, '--target');
  await refuseInLake(path, absolutePath(out, surroundings.home));
  return path;
}

/** A folder for the files of an engine, for corrected lines. */
export function exampleTarget(engine: string): string {
  return engine === 'freqtrade' ? 'user_data/data/binance' : engine;
}
