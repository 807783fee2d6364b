/** `cryptodl schedule -- COMMAND`: prints the command as a crontab line and as systemd units. */
import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import type { VerbCall } from '../../run/verb/verb.js';
import { printError } from '../../terminal/print-error.js';
import { writeText } from '../../terminal/write-data.js';
import { checkRequest, readJobs } from '../../run/jobs.js';
import { pastRun, readReport } from '../../run/failures/select-failures.js';
import { toCryptodlError, usage } from '../../model/errors.js';
import type { ExitCode } from '../../model/exit-code.js';
import type { Io } from '../../model/io.js';
import { listText } from '../../model/units.js';
import { homeOf } from '../../files/environment.js';
import { PROXY_VARIABLES } from '../../files/proxies.js';
import { environmentName, type Options } from '../../plan/options/flags.js';
import { flagsOf, type VerbSpec } from '../../plan/options/verb-spec.js';
import { layersOf, resolveOptions, type Invocation, type Resolved } from '../../plan/options/resolve.js';
import { absolutePath, printLines, withoutPassword } from '../../text/printable.js';

/** Each run starts after a random delay up to this, so that the runs of many users do not send requests in the same second. */
const DELAY = { systemd: '10min', flag: '10m' };

/** Prints the schedule of a command. A mistake of the command gives the same error as the command itself. */
export async function schedule(command: VerbCall<'at' | 'every' | 'kind'>): Promise<ExitCode> {
  const { resolved, io, behind } = command;
  const typed = behind[0] === 'cryptodl' ? behind.slice(1) : behind;
  if (typed.length === 0)
    throw usage('schedule needs a command', 'for example: cryptodl schedule -- vision -s BTCUSDT -d 7');
  const invocation = command.parseLine(typed, io);
  if (invocation === undefined) return 0;
  try {
    const ofCommand = await checkCommand(invocation, command);
    const scheduled = scheduledCommand(typed, invocation.verb, ofCommand, io);
    await writeText(io, scheduleText(scheduled, invocation, resolved.options));
    return 0;
  } catch (error) {
    // The options of the command have other sources than those of `schedule`.
    return printError(toCryptodlError(error), io);
  }
}

/** Resolves the options of the command. Throws the usage errors that the command gives before its first request. */
async function checkCommand(
  invocation: Invocation,
  { io, exchange, verbs }: VerbCall<never>,
): Promise<Resolved> {
  const { verb, operand = '' } = invocation;
  if (verb.name === 'run') return (await readJobs(invocation, { io, verbs }, exchange)).resolved;
  const layers = await layersOf(invocation, io);
  if (verb.name === 'retry')
    return pastRun(await readReport(operand, exchange), layers, { verbs, exchange }).resolved;
  const resolved = resolveOptions(verb, layers, exchange);
  if (verb.name === 'vision' || verb.name === 'metrics')
    await checkRequest(verb.name, resolved, { exchange, clock: io.clock });
  return resolved;
}

/** The command as typed. Warns of variables of this environment, which cron and systemd do not have. */
function scheduledCommand(
  typed: readonly string[],
  verb: VerbSpec,
  { options, origins, texts }: Resolved<'json' | 'proxy' | 'quiet'>,
  io: Io,
): ScheduledCommand {
  const flags = flagsOf(verb);
  // cron mails all output.
  const quiet = flags.includes('quiet') && !options.quiet && !options.json ? ['--quiet'] : [];
  const words = [...io.program, ...typed, ...quiet];
  const folder = resolve('.');
  // The shell that cron starts reads this file, and systemd does.
  const file = absolutePath('~/.config/cryptodl/environment', homeOf(io.environment));
  const add = `add lines like CRYPTODL_PROXY='http://user:password@host:port' to ${file} (chmod 600), and run schedule again`;
  // Other users may read a crontab or a unit.
  const secret = flags.find(
    (name) => origins[name] === 'flag' && texts[name]?.some((text) => withoutPassword(text) !== text),
  );
  if (secret !== undefined)
    throw usage(`--${secret} has a password, which others can read in a crontab`, `leave it out, and ${add}`);
  if ([folder, ...words].some((word) => /\p{Cc}/u.test(word)))
    throw usage(
      'schedule: a crontab or unit cannot contain a line break or another control character',
      'put the value into a --config FILE',
    );
  const isProxied = flags.includes('proxy') && options.proxy === undefined;
  const lost = [
    // A scheduled run takes the time from the clock.
    ...flags.filter((name) => origins[name] === 'environment' && name !== 'now').map(environmentName),
    ...(isProxied ? PROXY_VARIABLES.flatMap((name) => [name, name.toLowerCase()]) : []),
  ].filter((name) => (io.environment[name] ?? '') !== '');
  const isThere = existsSync(file);
  if (lost.length > 0 && !isThere)
    printLines(io.stderr, [
      `warning: ${listText(lost)}: set in this environment but not in that of cron and systemd: use flags, or ${add}`,
    ]);
  return { words, folder, ...(isThere ? { environmentFile: file } : {}) };
}

function scheduleText(
  command: ScheduledCommand,
  { verb, operand, values }: Invocation,
  options: Options<'at' | 'every' | 'kind'>,
): string {
  const { atMinutes, every, kind } = options;
  const when = {
    hour: Math.floor(atMinutes / 60),
    minute: atMinutes % 60,
    everyHours: every?.kind === 'hours' ? every.hours : 24,
  };
  const name = unitName(verb.name, operand);
  const { service, timer } = units(command, when, { title: `cryptodl ${verb.name}`, delay: DELAY.systemd });
  // systemd has RandomizedDelaySec.
  const hasJitter = flagsOf(verb).includes('jitter') && values.jitter === undefined;
  const words = [...command.words, ...(hasJitter ? ['--jitter', DELAY.flag] : [])];
  const folder = '~/.config/systemd/user';
  return [
    ...(kind === 'systemd' ? [] : [crontab({ ...command, words }, when)]),
    ...(kind === 'cron'
      ? []
      : [
          `# ${folder}/${name}.service\n${service}`,
          `# ${folder}/${name}.timer\n${timer}`,
          `# systemctl --user daemon-reload && systemctl --user enable --now ${name}.timer && loginctl enable-linger\n`,
        ]),
  ].join('\n');
}

/** `cryptodl-vision`; for `run`, the name of the jobs file without its extension replaces the verb. */
function unitName(verb: string, operand: string | undefined): string {
  const what = verb === 'run' ? basename(operand ?? verb).replace(/\.\w+$/, '') : verb;
  return `cryptodl-${what.replaceAll(/[^\w.-]/g, '_')}`;
}

// Writes a command as lines of a crontab, and as a service unit and a timer unit of systemd.

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

interface ScheduledCommand {
  /** Program and arguments, without line breaks. */
  readonly words: readonly string[];
  /** Absolute. */
  readonly folder: string;
  /** Absolute path of a file with `NAME=value` lines, for values that must not appear in the command. */
  readonly environmentFile?: string;
}

/** A crontab line, which changes to the folder and runs the command, with CRON_TZ and comments. */
function crontab({ words, folder, environmentFile }: ScheduledCommand, when: When): string {
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
function units(
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
