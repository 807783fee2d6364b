/** A command as the lines of a crontab. */
import { shellWord } from '../shell-word.js';
import { cronFields } from './when.js';
import type { When } from './when.js';

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
