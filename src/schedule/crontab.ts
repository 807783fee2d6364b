/** A command as the lines of a crontab. */
import { shellWord } from '../text/printable.js';

export interface ScheduledCommand {
  /** Program and arguments, word by word, without line breaks. */
  readonly words: readonly string[];
  /** Absolute. */
  readonly folder: string;
  readonly when: When;
  /** Absolute; a file of `NAME=value` lines with what must not stand in a command. */
  readonly environmentFile?: string;
}

/** Debian's cron takes no longer ones. */
export const LONGEST_CRON_LINE = 998;

export function cronLine({ words, folder, when, environmentFile }: ScheduledCommand): string {
  const environment =
    environmentFile === undefined ? '' : `set -a && . ${cronWord(environmentFile)} && set +a && `;
  const command = `${environment}cd ${cronWord(folder)} && ${words.map(cronWord).join(' ')}`;
  return `${cronFields(when)} ${command}`;
}

export function crontab(command: ScheduledCommand): string {
  return `# crontab -e, at its end: CRON_TZ is for all lines below it.
# Debian's and Ubuntu's cron know no CRON_TZ: there the hour is one of the machine's own time zone (timedatectl shows it).
CRON_TZ=UTC
${cronLine(command)}
`;
}

/**
 * For the shell, and before it for cron: to cron an unescaped `%` ends the line, and a backslash before `%` or another
 * backslash is dropped, within quotes too (crontab(5), do_command.c). So no backslash of ours stands before one of them.
 */
function cronWord(word: string): string {
  return shellWord(word)
    .replaceAll(/\\(?=[\\%])/g, "\\''")
    .replaceAll('%', String.raw`\%`);
}

/** When a command is run again, in the words of cron and of systemd. UTC. */
export interface When {
  readonly hour: number;
  readonly minute: number;
  /** Divides 24, which is once a day. */
  readonly everyHours: number;
}

/** `5 8 * * *` */
function cronFields(when: When): string {
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
