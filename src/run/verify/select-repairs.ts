/** `cryptodl repair`: fixes the lake, then plans the lost objects and the missing days like any other run. */
import type { RunSession, Session } from '../session/session.js';
import { FORMATS, seriesName, type Series } from '../../model/task.js';
import { Counters, type Counts } from '../../model/counters.js';
import { countText } from '../../model/units.js';
import type { Resolved } from '../../plan/options/resolve.js';
import type { SelectedSeries } from '../../plan/series-request.js';
import { selectHeldSeries, nothingHeld } from '../../plan/select/held-series.js';
import type { RunSelection } from '../../plan/select/selection.js';
import { findDataset, isMade } from '../../exchange/exchange-spec.js';
import { shellWord } from '../../text/printable.js';
import { checkLake } from './check-lake.js';
import type { LakeFindingKind, LakeFinding } from './lake-finding.js';
import { repairRequest } from './repair-request.js';

/** A dry run changes nothing; any other run must hold the lake's lock. Throws usage errors. */
export async function selectRepairs(session: RunSession, resolved: Resolved<never>): Promise<RunSelection> {
  const { options, exchange } = session;
  const selection = await selectHeldSeries(session, resolved);
  const requests: SelectedSeries[] = [];
  const found = new Counters<LakeFindingKind>();
  let seriesCount = 0;
  let hasEvidence = false;
  const fix = !options.dryRun;
  for await (const { check, findings } of checkLake(session, { selection, fix })) {
    for (const finding of findings) {
      found.add(finding.kind);
      hasEvidence ||= finding.done?.includes('kept in ') === true;
      tellFinding(session, finding, fix);
    }
    if (check === undefined) continue;
    seriesCount += 1;
    const { series } = check.folder;
    const { dropped, newer } = check.inspected;
    const spec = findDataset(exchange, series.market, series.dataset);
    // A line of a later version may hold what seems to be missing, and no run of this version can write the series.
    if (spec === undefined || newer.length > 0) continue;
    if (isMade(spec)) {
      if (check.broken.length + dropped.length > 0) session.observer.warn(barsAgain(series, options.out));
      continue;
    }
    for (const format of FORMATS)
      if (selection.format === undefined || format === selection.format)
        requests.push(...repairRequest(session, check, spec, format));
  }
  if (seriesCount === 0 && selection.names?.size !== 0) throw nothingHeld(options.out);
  const days = requests.flatMap(({ ranges }) => ranges).reduce((sum, { from, to }) => sum + to - from, 0);
  return {
    verb: 'repair',
    requests,
    hasListing: true,
    what: 'repair',
    idle: `nothing is missing in the ${seriesCount} series of the ${options.shard === undefined ? 'lake' : 'shard'}`,
    range: `${countText(days, 'day')}; the lake has ${countText(seriesCount, 'series')}`,
    notes: foundNotes(found.all, hasEvidence),
  };
}

/** Reports a finding. Counts and warns of one that the run leaves as it is. */
function tellFinding({ observer, tally }: Session, finding: LakeFinding, fix: boolean): void {
  observer.event('finding', finding);
  // After a fix, `fix` is left only for a file that was changed in the last minutes: another run may be writing it.
  const isLeft = fix && finding.left === 'fix';
  const remedy = isLeft ? 'wait for it' : SKIPPED[finding.kind];
  if (remedy === undefined) return;
  tally.add('skippedPaths');
  observer.warn(`${finding.path} was not changed: ${finding.text}; ${remedy}, then run repair again`);
}

/** No download has bars: they are made again from other rows of the lake. */
function barsAgain(series: Series, out: string): string {
  const { market, dataset, interval = '', symbol } = series;
  const words = [dataset, interval, '--market', market, '--symbols', symbol, '--out', out];
  return `${seriesName(series)} has lost bars, and no download has them; to make them again: cryptodl ${words.map(shellWord).join(' ')}`;
}

/** Findings that `repair` leaves as they are, although data may be missing behind them, with the step that a person must do. */
const SKIPPED: Readonly<Partial<Record<LakeFindingKind, string>>> = {
  unreadable: 'make it readable or move it away',
  link: 'replace the link by the folder or file itself',
  'line-newer': 'use the newer cryptodl that wrote it',
};

function foundNotes(found: Counts, hasEvidence: boolean): string[] {
  const parts = Object.entries(found).map(([kind, number]) => `${number} ${kind}`);
  if (parts.length === 0) return [];
  return [`found      ${parts.join(', ')}${hasEvidence ? '; damaged files are kept in _quarantine/' : ''}`];
}
