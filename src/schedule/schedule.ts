/** `cryptodl schedule -- COMMAND`: the command as a line of a crontab and as units of systemd, ready to paste. */
import { basename, resolve } from 'node:path';
import { isSchedulable } from '../cli/command-words.js';
import { layersOf } from '../cli/option-layers.js';
import { complain } from '../cli/print-error.js';
import type { Typed } from '../cli/print-error.js';
import { parseCommandLine } from '../cli/program.js';
import type { Invocation } from '../cli/program.js';
import { writeText } from '../cli/write-data.js';
import { checkRequest, readJobs } from '../download/jobs.js';
import { pastRun, readReport } from '../download/past-runs.js';
import { systemClock } from '../model/clock.js';
import { toCryptodlError, usage } from '../model/errors.js';
import type { ExitCode } from '../model/exit-code.js';
import type { Io } from '../model/io.js';
import { homeOf } from '../options/environment.js';
import { environmentName, flagsOf } from '../options/flags.js';
import type { Options } from '../options/flags.js';
import { resolveOptions } from '../options/resolve.js';
import type { Resolved } from '../options/resolve.js';
import { readSymbolFile } from '../select/read-lists.js';
import { absolutePath } from '../text/paths.js';
import { printable, printLines, withoutPassword } from '../text/printable.js';
import { cronLine, crontab, LONGEST_CRON_LINE } from './crontab.js';
import type { ScheduledCommand } from './crontab.js';
import { lostVariables, scheduledWords, secretFlags } from './scheduled-words.js';
import { units } from './systemd.js';

/** So that not all of a time zone come in the same second. */
const DELAY = { systemd: '10min', flag: '10m' };
/** A week: a day that is published late is still in the range when it comes. */
const FIRST_LINE = ['vision', '--symbols', 'BTCUSDT', '--days', '7'];

/** A mistake behind `--` is answered like the mistake itself. */
export async function schedule(
  behind: readonly string[],
  options: Options,
  { argv, io }: Typed,
): Promise<ExitCode> {
  const own = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const line = behind[0] === 'cryptodl' ? behind.slice(1) : behind;
  if (line.length === 0)
    throw usage('schedule: of which command?', 'it stands behind --', {
      argv: [...own, '--', ...FIRST_LINE],
    });
  const typed: Typed = { argv: line, io, before: [...own, '--'] };
  try {
    const invocation = parseCommandLine(line, io);
    if (invocation === undefined) return 0;
    refuseUnfit(invocation);
    const resolved = await checked(invocation, typed);
    warn(invocation, resolved, typed);
    await writeText(io, texts(invocation, resolved, options, typed));
    return 0;
  } catch (error) {
    return complain(toCryptodlError(error), typed);
  }
}

function refuseUnfit({ verb }: Invocation): void {
  if (!isSchedulable(verb))
    throw usage(`schedule: ${verb} is nothing to do again and again`, undefined, { argv: FIRST_LINE });
}

/** Throws what the command itself would be refused with before it does anything. */
async function checked(invocation: Invocation, { io }: Typed): Promise<Resolved> {
  const { verb, operand = '' } = invocation;
  if (verb === 'run') return (await readJobs(invocation, io)).resolved;
  const layers = await layersOf(invocation, io);
  if (verb === 'retry') return pastRun(operand, await readReport(operand), layers).resolved;
  const resolved = resolveOptions(verb, layers);
  if (verb === 'vision' || verb === 'metrics')
    await checkRequest(verb, resolved, { clock: systemClock, read: readSymbolFile });
  return resolved;
}

function warn({ verb, values }: Invocation, resolved: Resolved, { io }: Typed): void {
  const warnings = [
    ...(values.now === undefined ? [] : ['--now: every run will take that for the present']),
    ...lostVariables(verb, { resolved, io }).map(
      (name) => `${name} is set here, and will not be there: say the same with a flag`,
    ),
    ...secretFlags(verb, resolved).map(
      (name) =>
        `--${name} holds a password, which is not printed: write the line ${environmentName(name)}='http://user:password@host:port' into ${environmentFile(io)} (chmod 600)`,
    ),
  ];
  printLines(
    io.stderr,
    warnings.map((text) => `warning: ${text}`),
  );
}

/** Read by the shell that cron starts, and by systemd. */
function environmentFile({ environment }: Io): string {
  return absolutePath('~/.config/cryptodl/environment', homeOf(environment));
}

function texts(invocation: Invocation, resolved: Resolved, options: Options, { argv, io }: Typed): string {
  const { verb, operand } = invocation;
  const words = [...io.program, ...scheduledWords(argv, verb, { resolved, io })];
  const everyHours = options.every === 'day' ? 24 : Number.parseInt(options.every, 10);
  const when = { hour: Math.floor(options.atMinutes / 60), minute: options.atMinutes % 60, everyHours };
  const command: ScheduledCommand = {
    words,
    folder: resolve('.'),
    when,
    ...(secretFlags(verb, resolved).length === 0 ? {} : { environmentFile: environmentFile(io) }),
  };
  if ([command.folder, ...words].some((word) => printable(word) !== withoutPassword(word)))
    throw usage(
      'schedule: neither a crontab nor a unit can hold a line break or another control character',
      'write it in a --config FILE',
    );
  const cron: ScheduledCommand = { ...command, words: [...words, ...jitter(invocation)] };
  if (options.kind !== 'systemd' && cronLine(cron).length > LONGEST_CRON_LINE)
    printLines(io.stderr, [
      `warning: the line has more than ${LONGEST_CRON_LINE} characters, which Debian's cron refuses: write options in a --config FILE`,
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

/** systemd waits by itself. */
function jitter({ verb, values }: Invocation): string[] {
  const takes = flagsOf(verb).includes('jitter');
  return takes && values.jitter === undefined ? ['--jitter', DELAY.flag] : [];
}

/** `cryptodl-vision`; of jobs, after their file. */
function unitName(verb: string, operand: string | undefined): string {
  const what = verb === 'run' ? basename(operand ?? verb).replace(/\.\w+$/, '') : verb;
  return `cryptodl-${what.replaceAll(/[^\w.-]/g, '_')}`;
}
