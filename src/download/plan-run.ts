/** What every run does before it begins: plan, refuse, remember the options. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DAY_MS } from '../model/calendar.js';
import { usage } from '../model/errors.js';
import { makePlan } from '../plan/plan.js';
import type { Plan } from '../plan/plan.js';
import { bytesText } from '../model/units.js';
import type { Session } from './session.js';
import type { Wanted } from '../select/selection.js';

export function planRun(session: Session, wanted: Pick<Wanted, 'hasListing' | 'requests'>): Promise<Plan> {
  const { venue, paths, observer, options } = session;
  return makePlan(
    {
      venue,
      root: paths.root,
      manifests: session.manifests,
      today: Math.floor(session.nowMs / DAY_MS),
      nowMs: session.nowMs,
      force: options.force,
      revisions: options.revisions,
      recheckDays: options.recheckDays,
      takenAnyway: new Set(
        options.verify === 'sha256' && options.staleChecksum === 'fail' ? [] : ['sidecar-stale'],
      ),
      listing: wanted.hasListing ? session.listing : undefined,
      probe: session.probe,
      spoolPath: join(session.runFolder, `plan-${randomUUID()}.jsonl`),
      warn: (message) => {
        observer.warn(message);
      },
    },
    wanted.requests,
  );
}

/** Throws the usage error of --max-bytes. */
export function refuseLargePlan(session: Session, plan: Pick<Plan, 'totals'>): void {
  const limit = session.options.maxBytes;
  if (limit === undefined || plan.totals.fetchBytes <= limit) return;
  throw usage(
    `the plan is ${bytesText(plan.totals.fetchBytes)}, more than --max-bytes ${bytesText(limit)}`,
    'choose fewer symbols or days, or a larger --max-bytes',
    { flags: { 'max-bytes': String(plan.totals.fetchBytes) } },
  );
}
