/** Times of day at which something runs again and again, in UTC. */

export interface When {
  readonly hour: number;
  readonly minute: number;
  /** A divisor of 24; 24 is once a day. */
  readonly everyHours: number;
}

/** `atMinutes`: minutes after midnight. */
export function whenOf(atMinutes: number, everyHours: number): When {
  return { hour: Math.floor(atMinutes / 60), minute: atMinutes % 60, everyHours };
}

/** `5 8 * * *` */
export function cronFields(when: When): string {
  return `${when.minute} ${hoursOf(when) ?? '*'} * * *`;
}

/** Undefined for every hour. */
export function hoursOf({ hour, everyHours }: When, digits = 1): string | undefined {
  if (everyHours === 1) return undefined;
  const hours = Array.from({ length: 24 / everyHours }, (_, index) => (hour + index * everyHours) % 24);
  return hours
    .sort((a, b) => a - b)
    .map((each) => String(each).padStart(digits, '0'))
    .join(',');
}
