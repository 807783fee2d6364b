/** Measures a command: wall time with the clock of this process, CPU and memory with a tool of the system. */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';

/**
 * @typedef {object} Measured
 * @property {number} wallSeconds
 * @property {number | undefined} cpuSeconds user and system, of the process and all it waited for
 * @property {number | undefined} peakBytes resident set of the largest process
 * @property {number | null} exitCode null when a signal ended it
 * @property {string} stdout
 * @property {string} stderr
 */

/**
 * @typedef {object} Meter
 * @property {string} name
 * @property {readonly string[]} prefix put in front of a command
 * @property {(report: string) => { cpuSeconds: number, peakBytes?: number } | undefined} read
 */

/** GNU time, or else the shell's `times`, which has no memory figure. */
export function chooseMeter(/** @type {string} */ reportFile) {
  const { stdout } = spawnSync('/usr/bin/time', ['--version'], { encoding: 'utf8' });
  return /GNU/.test(stdout ?? '') ? gnuTime(reportFile) : shellTimes(reportFile);
}

/**
 * @param {string} reportFile
 * @returns {Meter}
 */
function gnuTime(reportFile) {
  return {
    name: '/usr/bin/time',
    prefix: ['/usr/bin/time', '--output', reportFile, '--format', '%U %S %M'],
    read: (report) => {
      const [user, system, kilobytes] = numbers(report.trim().split('\n').at(-1) ?? '');
      if (user === undefined || system === undefined || kilobytes === undefined) return undefined;
      return { cpuSeconds: user + system, peakBytes: kilobytes * 1024 };
    },
  };
}

/**
 * @param {string} reportFile
 * @returns {Meter}
 */
function shellTimes(reportFile) {
  const script = 'report=$1; shift; "$@"; code=$?; times >"$report"; exit $code';
  return {
    name: 'times of sh (GNU time, for memory: apt install time)',
    prefix: ['sh', '-c', script, 'sh', reportFile],
    read: (report) => {
      // Two lines of user and system time as `0m1.23s`: the shell's own, and its children's.
      const [userMinutes, user, systemMinutes, system] = numbers(report.trim().split('\n')[1] ?? '');
      if (userMinutes === undefined || user === undefined) return undefined;
      if (systemMinutes === undefined || system === undefined) return undefined;
      return { cpuSeconds: (userMinutes + systemMinutes) * 60 + user + system };
    },
  };
}

/** @param {string} line */
function numbers(line) {
  return [...line.matchAll(/\d+(\.\d+)?/g)].map(([text]) => Number(text));
}

/**
 * Runs a command to its end. Rejects if it cannot start.
 * @param {Meter} meter
 * @param {string} reportFile
 * @param {readonly string[]} command
 * @param {{ cwd: string, env: NodeJS.ProcessEnv }} options
 * @returns {Promise<Measured>}
 */
export async function measure(meter, reportFile, command, options) {
  rmSync(reportFile, { force: true });
  const [program = '', ...args] = [...meter.prefix, ...command];
  const started = process.hrtime.bigint();
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill();
  process.on('exit', kill);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  /** @type {number | null} */
  const exitCode = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  process.off('exit', kill);
  const wallSeconds = Number(process.hrtime.bigint() - started) / 1e9;
  const used = meter.read(readFileSync(reportFile, 'utf8'));
  return { wallSeconds, cpuSeconds: used?.cpuSeconds, peakBytes: used?.peakBytes, exitCode, stdout, stderr };
}
