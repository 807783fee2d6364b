import { DAY_MS } from '../calendar.js';
import { durationText } from '../units.js';

/** `3h 0m ago (2026-11-21 05:00 UTC)`; both in epoch milliseconds. */
export function agoText(at: number, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - at);
  const days = Math.floor(ageMs / DAY_MS);
  const age = days < 2 ? durationText(ageMs) : `${days} days`;
  return `${age} ago (${new Date(at).toISOString().replace('T', ' ').slice(0, 16)} UTC)`;
}
