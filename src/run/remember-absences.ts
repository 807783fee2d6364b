/** What a run was told to be absent goes into the manifests, so that it is known why, and not asked for each time. */
import { join } from 'node:path';
import { dayPeriod, monthOf, monthPeriod, periodText } from '../calendar.js';
import { isDue } from '../lake/absences.js';
import type { AbsentLine } from '../lake/absences.js';
import { folderInside } from '../lake/inside.js';
import { MANIFEST, seriesFolder } from '../lake/layout.js';
import { appendManifest, readManifest } from '../lake/manifest.js';
import type { Manifest } from '../lake/manifest.js';
import { fileSize } from '../lake/publish.js';
import type { AbsenceReason, Cadence, Period, Series } from '../task.js';
import { TOOL_VERSION } from '../version.js';

export interface AbsenceContext {
  readonly root: string;
  readonly venue: string;
  /** What "now" means for this run. */
  readonly nowMs: number;
}

/** Periods one after the other, by the number of their day or month. */
interface Stretch {
  readonly cadence: Cadence;
  readonly reason: AbsenceReason;
  readonly from: number;
  to: number;
}

export class AbsenceNotes {
  readonly #context: AbsenceContext;
  readonly #bySeries = new Map<string, Stretch[]>();

  constructor(context: AbsenceContext) {
    this.#context = context;
  }

  /** `since`: the first day for which the reason holds, which may not be among the periods that were asked for. */
  note(series: Series, { cadence, from }: Period, reason: AbsenceReason, since = from): void {
    const folder = seriesFolder(this.#context.venue, series);
    const stretches = this.#bySeries.get(folder) ?? [];
    this.#bySeries.set(folder, stretches);
    for (const day of since < from ? [since, from] : [from]) {
      const at = cadence === 'daily' ? day : monthOf(day);
      const isOf = (stretch: Stretch): boolean => stretch.cadence === cadence && stretch.reason === reason;
      const last = stretches.at(-1);
      if (stretches.some((stretch) => isOf(stretch) && stretch.from <= at && at < stretch.to)) continue;
      if (last !== undefined && isOf(last) && last.to === at) last.to = at + 1;
      else stretches.push({ cadence, reason, from: at, to: at + 1 });
    }
  }

  /** Of series that the lake holds something of; nobody may write to their manifests meanwhile. */
  async write(): Promise<void> {
    for (const [name, stretches] of this.#bySeries) {
      const folder = await folderInside(this.#context.root, name);
      if ((await fileSize(join(folder, MANIFEST))) === undefined) continue;
      const manifest = await readManifest(folder);
      const lines = stretches.flatMap((stretch) => this.#linesOf(manifest, stretch));
      if (lines.length > 0) await appendManifest(folder, lines);
    }
    this.#bySeries.clear();
  }

  /** Only what is news: another reason, or asked again when it was due. */
  #linesOf(manifest: Manifest, { cadence, reason, from, to }: Stretch): AbsentLine[] {
    const { nowMs } = this.#context;
    const lines: { first: string; last: string; asked: number; end: number }[] = [];
    for (let at = from; at < to; at += 1) {
      const period = cadence === 'daily' ? dayPeriod(at) : monthPeriod(at);
      const before = manifest.absences.of(period);
      const isNews = before?.reason !== reason || isDue(before, nowMs);
      if (!isNews || isHeld(manifest, period)) continue;
      const asked = before?.reason === reason ? before.asked + 1 : 1;
      const text = periodText(period);
      const last = lines.at(-1);
      if (last?.end === at && last.asked === asked) Object.assign(last, { last: text, end: at + 1 });
      else lines.push({ first: text, last: text, asked, end: at + 1 });
    }
    const at = new Date(nowMs).toISOString();
    return lines.map(({ first, last, asked }) => ({
      v: 1,
      kind: 'absent',
      cadence,
      first,
      last,
      reason,
      asked,
      at,
      tool: TOOL_VERSION,
    }));
  }
}

function isHeld(manifest: Manifest, { cadence, from }: Period): boolean {
  return (['parquet', 'csv', 'zip'] as const).some((format) => {
    const month = manifest[format].ofMonth(monthOf(from));
    return month !== undefined || (cadence === 'daily' && manifest[format].ofDay(from) !== undefined);
  });
}
