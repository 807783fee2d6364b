/** Writes a command as lines of a crontab, and as a service unit and a timer unit of systemd. */

/** A time of day at which something runs again and again, in UTC. */
interface When {
  readonly hour: number;
  readonly minute: number;
  /** A divisor of 24; 24 is once a day. */
  readonly everyHours: number;
}

function hoursOf({ hour, everyHours }: When, digits = 1): string {
  if (everyHours === 1) return '*';
  const hours = Array.from({ length: 24 / everyHours }, (_, index) => (hour + index * everyHours) % 24);
  const sorted = hours.sort((a, b) => a - b);
  return sorted.map((each) => String(each).padStart(digits, '0')).join(',');
}

export interface ScheduledCommand {
  /** Program and arguments, without line breaks. */
  readonly words: readonly string[];
  /** Absolute. */
  readonly folder: string;
  /** Absolute path of a file with `NAME=value` lines, for values that must not appear in the command. */
  readonly environmentFile?: string;
}

/** A crontab line, which changes to the folder and runs the command, with CRON_TZ and comments. */
export function crontab({ words, folder, environmentFile }: ScheduledCommand, when: When): string {
  const environment =
    environmentFile === undefined ? '' : `set -a && . ${cronWord(environmentFile)} && set +a && `;
  return `# Paste at the end of crontab -e: CRON_TZ applies to all lines below it.
# Cron of Debian and Ubuntu ignores CRON_TZ and uses the time zone of the machine (timedatectl shows it).
CRON_TZ=UTC
${when.minute} ${hoursOf(when)} * * * ${environment}cd ${cronWord(folder)} && ${words.map(cronWord).join(' ')}
`;
}

/**
 * Quotes a word for `sh` and for cron. For cron, an unescaped `%` ends the command, and a backslash before `%` or another backslash is
 * dropped, also within quotes (crontab(5), do_command.c). So `%` stands outside of quotes, where `sh` drops a backslash that a
 * cron keeps, and `''` stands between two backslashes.
 */
function cronWord(word: string): string {
  if (/^[\p{L}\p{N}_@+=:,./-]+$/u.test(word)) return word;
  return `'${word.replaceAll(/\\(?=\\)|['%]/g, (found) => (found === '\\' ? "\\''" : `'\\${found}'`))}'`;
}

/** Exit code after SIGTERM. It is no failure of the unit: the lake stays whole, and the next start continues. */
const STOPPED = 143;

/** `delay` is the RandomizedDelaySec of the timer. */
export function units(
  { words, folder, environmentFile }: ScheduledCommand,
  when: When,
  { title, delay }: { readonly title: string; readonly delay: string },
): { readonly service: string; readonly timer: string } {
  const [program = '', ...args] = words;
  const line = [quoted(specified(program)), ...args.map((word) => quoted(literal(word)))].join(' ');
  return {
    service: `[Unit]
Description=${specified(title)}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory=${pathValue(folder)}
${environmentFile === undefined ? '' : `EnvironmentFile=${pathValue(globLiteral(environmentFile))}\n`}ExecStart=${line}
SuccessExitStatus=${STOPPED}
`,
    timer: `[Unit]
Description=${specified(title)}, on time

[Timer]
OnCalendar=*-*-* ${hoursOf(when, 2)}:${String(when.minute).padStart(2, '0')}:00 UTC
RandomizedDelaySec=${delay}
Persistent=true

[Install]
WantedBy=timers.target
`,
  };
}

/** Escapes `%`, which begins a specifier (systemd.unit(5)). */
const specified = (text: string): string => text.replaceAll('%', '%%');

/** A path has no quotes. A slash keeps a blank or a backslash at its end, which would be dropped or would join the next line. */
const pathValue = (path: string): string => specified(path).replace(/[\s\\]$/, '$&/');

/** EnvironmentFile is a pattern of files (systemd.exec(5)). */
const globLiteral = (path: string): string => path.replaceAll(/[*?[\\]/g, String.raw`\$&`);

/** Escapes `$` too, which begins a variable in arguments but not in the path of the program (systemd.service(5)). */
const literal = (word: string): string => specified(word).replaceAll('$', '$$$$');

function quoted(word: string): string {
  if (/^[\p{L}\p{N}_@%$+=:,./-]+$/u.test(word)) return word;
  return `"${word.replaceAll('\\', '\\\\').replaceAll('"', String.raw`\"`)}"`;
}
