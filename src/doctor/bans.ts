import { finding } from './finding.js';
import type { Finding } from './finding.js';

interface KnownBans {
  /** Resolves to the places of which a ban was remembered. */
  clear(host: string): Promise<readonly string[]>;
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
    next: 'run again after that; until then runs that need it end with exit code 7 and ask nothing (a ban that is a mistake is forgotten with --clear-bans HOST)',
  });
}

/** `--clear-bans HOST` */
export async function clearBans(bans: KnownBans, host: string): Promise<Finding> {
  const places = await bans.clear(host);
  const left = [...(await bans.lasting()).keys()];
  if (left.some((place) => place.endsWith(` ${host}`)))
    return finding('bans', 'fail', `the bans of ${host} could not be removed`, {
      next: 'choose a --state-dir that can be written',
    });
  if (places.length > 0) return finding('bans', 'ok', `removed: ${places.join(', ')}`);
  const others = left.length === 0 ? '' : `; remembered: ${left.join(', ')}`;
  return finding('bans', 'ok', `no ban of ${host} is remembered${others}`);
}

function dayAndTime(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').slice(0, 19);
}
