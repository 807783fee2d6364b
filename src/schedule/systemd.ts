/** Writes a command as a service unit and a timer unit of systemd. */
import type { ScheduledCommand } from './crontab.js';
import { calendar } from './crontab.js';

export interface Units {
  readonly service: string;
  readonly timer: string;
}

/** Exit code after SIGTERM. It is no failure of the unit: the lake stays whole, and the next start continues. */
const STOPPED = 143;

/** `delay` is the RandomizedDelaySec of the timer. */
export function units(
  { words, folder, when, environmentFile }: ScheduledCommand,
  { title, delay }: { readonly title: string; readonly delay: string },
): Units {
  const [program = '', ...args] = words;
  const line = [quoted(specified(program)), ...args.map((word) => quoted(literal(word)))].join(' ');
  return {
    service: `[Unit]
Description=${specified(title)}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
WorkingDirectory=${specified(folder)}
${environmentFile === undefined ? '' : `EnvironmentFile=${specified(environmentFile)}\n`}ExecStart=${line}
SuccessExitStatus=${STOPPED}
`,
    timer: `[Unit]
Description=${specified(title)}, on time

[Timer]
OnCalendar=${calendar(when)}
RandomizedDelaySec=${delay}
Persistent=true

[Install]
WantedBy=timers.target
`,
  };
}

/** Escapes `%`, which begins a specifier in every setting (systemd.unit(5)). */
function specified(text: string): string {
  return text.replaceAll('%', '%%');
}

/** Escapes `$` too, which begins a variable in arguments but not in the path of the program (systemd.service(5)). */
function literal(word: string): string {
  return specified(word).replaceAll('$', '$$$$');
}

function quoted(word: string): string {
  if (/^[\p{L}\p{N}_@%$+=:,./-]+$/u.test(word)) return word;
  return `"${word.replaceAll('\\', '\\\\').replaceAll('"', String.raw`\"`)}"`;
}
