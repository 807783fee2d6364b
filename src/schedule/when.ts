/** When a command is run again, in the words of cron and of systemd. UTC. */
export interface When {
  readonly hour: number;
  readonly minute: number;
  /** Divides 24, which is once a day. */
  readonly everyHours: number;
}

/** `5 8 * * *` */
export function cronFields(when: When): string {
  return `${when.minute} ${hoursOf(when) ?? '*'} * * *`;
}

/** `*-*-* 08:05:00 UTC` */
export function calendar(when: When): string {
  const hours = hoursOf(when, 2) ?? '*';
  return `*-*-* ${hours}:${String(when.minute).padStart(2, '0')}:00 UTC`;
}

/** Undefined for every hour. */
function hoursOf({ hour, everyHours }: When, digits = 1): string | undefined {
  if (everyHours === 1) return undefined;
  const hours = Array.from({ length: 24 / everyHours }, (_, index) => (hour + index * everyHours) % 24);
  return hours
    .sort((a, b) => a - b)
    .map((each) => String(each).padStart(digits, '0'))
    .join(',');
}
