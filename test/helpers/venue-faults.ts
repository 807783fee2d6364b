/** Ways in which one request in so many goes wrong at a REST venue. */
import { json, serverError } from './rest-venue-answers.js';
import type { Asked, VenueAnswer } from './rest-venue-types.js';

type Fault = (usual: () => VenueAnswer) => VenueAnswer;

/** In turn; what is cut or spoilt was counted by the venue like every answer. */
const FAULTS: readonly Fault[] = [
  () => serverError(500),
  (usual) => ({ ...usual(), cut: 'truncate' }),
  () => serverError(503),
  (usual) => json(usual().body.slice(0, -2)),
  () => ({ status: 200, headers: {}, body: '<!DOCTYPE html><html><body>Just a moment</body></html>' }),
];

/** Every twentieth request fails. `usual` is what the venue would have answered. */
export function oneInTwenty(asked: Asked, usual: (asked: Asked) => VenueAnswer): VenueAnswer | undefined {
  if (asked.number % 20 !== 7) return undefined;
  const fault = FAULTS[Math.floor(asked.number / 20) % FAULTS.length];
  return fault?.(() => usual(asked));
}
