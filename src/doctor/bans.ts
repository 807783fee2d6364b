import { finding } from './finding.js';
import type { Finding } from './finding.js';

interface KnownBans {
  /** By place, `futures fapi.binance.com`; `until` in epoch milliseconds. */
  lasting(): Promise<ReadonlyMap<string, { readonly until: number; readonly why: string }>>;
}

/** What hosts have asked not to be asked, as earlier runs of this machine remember it. */
export async function checkBans(bans: KnownBans): Promise<Finding> {
  const lasting = [...(await bans.lasting())].sort(([, a], [, b]) => b.until - a.until);
  const [longest] = lasting;
  if (longest === undefined) return finding('bans', 'ok', 'none is remembered');
  const texts = lasting.map(([place, { until }]) => `${place} until ${dayAndTime(until)} UTC`);
  return finding('bans', 'fail', `${texts.join(', ')}: ${longest[1].why}`, {
    figures: Object.fromEntries(lasting.map(([place, { until }]) => [place, new Date(until).toISOString()])),
    next: 'run again after that; until then runs that need it end with exit code 7 and ask nothing',
  });
}

function dayAndTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
}
