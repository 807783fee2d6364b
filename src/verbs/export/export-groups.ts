/** The files of an export, group by group: those of a pair, or of a dataset. */
import { grouped } from '../../model/by-name.js';
import { layerName, type Series } from '../../model/task.js';
import { daysOf, filesOf, type ExportFile, type Refused, type SeriesRows } from './export-file.js';
import { pairName, type Export } from './select-export.js';

/**
 * Yields the files of the selected series group by group, with the series that are left out. A series with a file that cannot be read would
 * have a hole that nothing shows, so it is left out.
 */
export async function* exportGroups({ request, program, assets, selected, range, catalogue }: Export) {
  const { exchange, resolved } = request;
  const nameOf = (series: Series): string =>
    program.groupBy === 'pair' ? pairName(series) : layerName(series);
  const taken = new Set<string>();
  for (const group of grouped(selected, nameOf).values()) {
    // Bars come last.
    const series = group.toSorted((a, b) => Number(a.dataset === 'bars') - Number(b.dataset === 'bars'));
    const sources: SeriesRows[] = [];
    const refused: Refused[] = [];
    for await (const { series: one, spec, files, fault } of catalogue.series(series)) {
      const refuse = (reason: string): void => void refused.push({ series: one, reason, isFault: true });
      if (spec === undefined) refuse('this version of cryptodl does not know the dataset');
      else if (fault !== undefined) refuse(fault);
      else if (files.length === 0) refuse('the lake has no Parquet or CSV files of it');
      else sources.push({ series: one, spec, files, range });
    }
    const held = sources.filter((source) => filesOf(source).length > 0);
    const files = program.files({ exchange, sources: held, options: resolved.options, assets });
    yield { series, items: [...refused, ...oneForEachPath(files, taken)] };
  }
}

/**
 * One file for each path that is not `taken` by another symbol: the one with the most days, of equally many days the first. Takes the paths. A
 * series that is in no file is refused if it has days that the file of its path lacks.
 */
function oneForEachPath(
  candidates: readonly (ExportFile | Refused)[],
  taken: Set<string>,
): readonly (ExportFile | Refused)[] {
  const all = candidates.flatMap((one) => ('path' in one ? [{ ...one, days: daysOf(one.sources) }] : []));
  const chosen = new Map<string, (typeof all)[number]>();
  for (const one of all.toSorted((a, b) => b.days.length - a.days.length))
    if (!taken.has(one.path) && !chosen.has(one.path)) chosen.set(one.path, one);
  const written = new Set([...chosen.values()].flatMap(({ sources }) => sources.map(({ series }) => series)));
  const refused = new Map<Series, Refused>();
  for (const one of candidates) if ('reason' in one) refused.set(one.series, one);
  for (const {
    path,
    days,
    sources: [source],
  } of all) {
    const other = chosen.get(path);
    if (source === undefined || (other !== undefined && written.has(source.series))) continue;
    if (days.every((day) => other?.days.includes(day))) continue;
    const reason = 'files of another series have the same names, and lack days of this one';
    refused.set(source.series, { series: source.series, reason });
  }
  for (const path of chosen.keys()) taken.add(path);
  return [...refused.values(), ...all.filter((file) => chosen.get(file.path) === file)];
}
