/** `cryptodl schedule -- COMMAND`: prints the command as a crontab line and as systemd units. */
import { basename, resolve } from 'node:path';
import type { LookUp } from '../cli/look-up.js';
import { layersOf } from '../cli/option-layers.js';
import { printError } from '../cli/print-error.js';
import { parseCommandLine } from '../cli/program.js';
import type { Invocation } from '../cli/program.js';
import { writeText } from '../cli/write-data.js';
import { checkRequest, readJobs } from '../download/jobs.js';
import { pastRun, readReport } from '../download/past-runs.js';
import { toCryptodlError, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { homeOf } from '../options/environment.js';
import type { Verb } from '../options/flag-spec.js';
import { environmentName, flagsOf } from '../options/flags.js';
import type { Options } from '../options/flags.js';
import { resolveOptions } from '../options/resolve.js';
import type { Resolved } from '../options/resolve.js';
import { readSymbolFile } from '../options/symbols.js';
import { SECRET_ADDRESSES } from '../options/value-text.js';
import type { Source } from '../source/source.js';
import { absolutePath, printable, printLines, withoutPassword } from '../text/printable.js';
import { givenFlags, scheduledWords, secretFlags } from './scheduled-command.js';
import { cronLine, crontab, LONGEST_CRON_LINE, units, whenOf } from './timers.js';
import type { ScheduledCommand } from './timers.js';

/** Each run starts after a random delay up to this, so that the runs of many users do not send requests in the same second. */
const DELAY = { systemd: '10min', flag: '10m' };

/** Prints the schedule of a command. A mistake of the command gives the same error as the command itself. */
export async function schedule(
  command: readonly string[],
  { resolved: { options }, io, source }: Pick<LookUp, 'resolved' | 'io' | 'source'>,
): Promise<ExitCode> {
  const line = command[0] === 'cryptodl' ? command.slice(1) : command;
  if (line.length === 0)
    throw usage('schedule needs a command', 'for example: cryptodl schedule -- vision -s BTCUSDT -d 7');
  const invocation = parseCommandLine(line, io);
  if (invocation === undefined) return 0;
  try {
    refuseUnschedulable(invocation);
    const resolved = await checkCommand(invocation, io, source);
    warn(invocation, resolved, io);
    await writeText(io, texts(invocation, resolved, options, io));
    return 0;
  } catch (error) {
    // The options of the command have other sources than those of `schedule`.
    return printError(toCryptodlError(error), io);
  }
}

/** Resolves the options of the command. Throws the usage errors that the command gives before its first request. */
async function checkCommand(invocation: Invocation, io: Io, source: Source): Promise<Resolved> {
  const { verb, operand = '' } = invocation;
  if (verb === 'run') return (await readJobs(invocation, io, source)).resolved;
  const layers = await layersOf(invocation, io);
  if (verb === 'retry') return pastRun(operand, await readReport(operand, source), layers, source).resolved;
  const resolved = resolveOptions(verb, layers, source);
  if (verb === 'vision' || verb === 'metrics')
    await checkRequest(verb, resolved, { source, clock: io.clock, read: readSymbolFile });
  return resolved;
}

const NOT_SCHEDULABLE: readonly Verb[] = ['schedule', 'list', 'schema', 'serve', 'completion', 'man'];

function refuseUnschedulable({ verb }: Invocation): void {
  if (NOT_SCHEDULABLE.includes(verb))
    throw usage(`schedule cannot repeat ${verb}: choose a command that downloads or checks`);
}

/** Warns of values that the printed lines do not have, or should not show to others. */
function warn({ verb }: Invocation, resolved: Resolved, io: Io): void {
  const { environment } = io;
  const secret = secretFlags(verb, resolved);
  const lost =
    flagsOf(verb).includes('proxy') && resolved.options.proxy === undefined
      ? ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'].filter(
          (name) => (environment[name] ?? '') !== '',
        )
      : [];
  const warnings = [
    ...lost.map((name) => `${name} is set in this environment but not in that of cron: use the flag instead`),
    ...secret.map(
      (name) =>
        `--${name} has a password, which is not printed: add the line ${environmentName(name)}='${name === 'redis' ? 'redis' : 'http'}://user:password@host:port' to ${environmentFile(io)} (chmod 600)`,
    ),
    ...givenFlags(verb, resolved)
      .filter((name) => SECRET_ADDRESSES.has(name) && !secret.includes(name))
      .map((name) => `the printed lines have the address of --${name}: do not pass them on`),
  ];
  printLines(
    io.stderr,
    warnings.map((text) => `warning: ${text}`),
  );
}

/** The file is read by the shell that cron starts, and by systemd. */
function environmentFile({ environment }: Io): string {
  return absolutePath('~/.config/cryptodl/environment', homeOf(environment));
}

function texts(invocation: Invocation, resolved: Resolved, options: Options, io: Io): string {
  const { verb, operand } = invocation;
  const words = [...io.program, ...scheduledWords(invocation, { resolved, io })];
  const { atMinutes, every } = options;
  const when = whenOf(atMinutes, every?.kind === 'hours' ? every.hours : 24);
  const command: ScheduledCommand = {
    words,
    folder: resolve('.'),
    when,
    ...(secretFlags(verb, resolved).length === 0 ? {} : { environmentFile: environmentFile(io) }),
  };
  if ([command.folder, ...words].some((word) => printable(word) !== withoutPassword(word)))
    throw usage(
      'schedule: a crontab or unit cannot contain a line break or another control character',
      'put the value into a --config FILE',
    );
  const cron: ScheduledCommand = { ...command, words: [...words, ...jitter(invocation)] };
  if (options.kind !== 'systemd' && cronLine(cron).length > LONGEST_CRON_LINE)
    printLines(io.stderr, [
      `warning: the line has more than ${LONGEST_CRON_LINE} characters, which Debian's cron refuses: put options into a --config FILE`,
    ]);
  const name = unitName(verb, operand);
  const { service, timer } = units(command, { title: `cryptodl ${verb}`, delay: DELAY.systemd });
  const folder = '~/.config/systemd/user';
  return [
    ...(options.kind === 'systemd' ? [] : [crontab(cron)]),
    ...(options.kind === 'cron'
      ? []
      : [
          `# ${folder}/${name}.service\n${service}`,
          `# ${folder}/${name}.timer\n${timer}`,
          `# systemctl --user daemon-reload && systemctl --user enable --now ${name}.timer && loginctl enable-linger\n`,
        ]),
  ].join('\n');
}

/** For cron only: systemd has RandomizedDelaySec. */
function jitter({ verb, values }: Invocation): string[] {
  const takes = flagsOf(verb).includes('jitter');
  return takes && values.jitter === undefined ? ['--jitter', DELAY.flag] : [];
}

/** `cryptodl-vision`; for `run`, the name of the jobs file without its extension replaces the verb. */
function unitName(verb: string, operand: string | undefined): string {
  const what = verb === 'run' ? basename(operand ?? verb).replace(/\.\w+$/, '') : verb;
  return `cryptodl-${what.replaceAll(/[^\w.-]/g, '_')}`;
}
