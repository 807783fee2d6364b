/** The files of `deploy/`: their commands are those of the program, and they take its exit codes for what they mean. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { cryptodl } from '../helpers/cli.js';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
const read = (name: string): string => readFileSync(join(DEPLOY, name), 'utf8');

/** A retry does not help after these. */
const PERMANENT = [2, 4];

/** Checks the options of a command line without running it. */
async function expectAccepted(args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await cryptodl([...args, '--print-options']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^shard +3\/12/m);
  expect(stdout).toMatch(/^out +s3:\/\/lake\/binance/m);
}

describe('kubernetes-job.yaml', () => {
  interface Rule {
    readonly action: string;
    readonly onExitCodes?: { readonly containerName: string; readonly values: readonly number[] };
  }
  const { spec } = parse(read('kubernetes-job.yaml')) as {
    spec: {
      completionMode: string;
      completions: number;
      podFailurePolicy: { rules: readonly Rule[] };
      template: { spec: { restartPolicy: string; containers: { name: string; args: string[] }[] } };
    };
  };
  const [container] = spec.template.spec.containers;

  it('has one shard per index', async () => {
    expect(spec).toMatchObject({ completionMode: 'Indexed', completions: 12 });
    await expectAccepted((container?.args ?? []).map((arg) => arg.replace('$(JOB_COMPLETION_INDEX)', '3')));
  });

  it('gives up the codes after which a retry does not help', () => {
    const rules = spec.podFailurePolicy.rules.flatMap(({ action, onExitCodes }) =>
      (onExitCodes?.values ?? []).map((code) => [code, action, onExitCodes?.containerName]),
    );
    expect(rules).toEqual([
      [2, 'FailJob', container?.name],
      [4, 'FailIndex', container?.name],
    ]);
    // A policy by exit codes needs pods that are not restarted in place.
    expect(spec.template.spec.restartPolicy).toBe('Never');
  });
});

describe('compose.yaml', () => {
  interface Service {
    readonly command?: readonly string[];
    readonly entrypoint?: readonly string[];
  }
  const { services } = parse(read('compose.yaml'), { merge: true }) as {
    services: Readonly<Record<string, Service>>;
  };

  it('has the commands of the queue', async () => {
    const words = [
      services['worker']?.command ?? [],
      [
        ...(services['enqueue']?.entrypoint?.slice(3) ?? []),
        ...'vision --days 7 --out s3://lake/data'.split(' '),
      ],
      services['status']?.entrypoint?.slice(3) ?? [],
    ];
    expect(words.map(([verb]) => verb)).toEqual(['worker', 'enqueue', 'status']);
    for (const line of words) {
      const { code, stderr } = await cryptodl([...line, '--redis', 'redis://redis:6379', '--print-options']);
      expect([code, stderr]).toEqual([0, '']);
    }
  });
});

describe('aws-batch-job.json', () => {
  const job = JSON.parse(read('aws-batch-job.json')) as {
    containerProperties: { command: string[] };
    retryStrategy: { evaluateOnExit: { onExitCode?: string; onReason?: string; action: string }[] };
  };

  it('has one shard per index of the array', async () => {
    const [shell, flag, line = ''] = job.containerProperties.command;
    expect([shell, flag]).toEqual(['sh', '-c']);
    const words = line.replace('"$AWS_BATCH_JOB_ARRAY_INDEX/12"', '3/12').split(' ');
    expect(words.slice(0, 2)).toEqual(['exec', 'cryptodl']);
    await expectAccepted(words.slice(2));
  });

  it('gives up the codes after which a retry does not help', () => {
    const ends = job.retryStrategy.evaluateOnExit.flatMap(({ onExitCode, action }) =>
      action === 'EXIT' && onExitCode !== '0' ? [Number(onExitCode)] : [],
    );
    expect(ends).toEqual(PERMANENT);
    expect(job.retryStrategy.evaluateOnExit.at(-1)).toEqual({ onReason: '*', action: 'RETRY' });
  });
});

/** Runs the file with stand-ins for Airflow and for the processes that it starts, and prints what it did. */
const PYTHON = `
import json, runpy, subprocess, sys, types
told = {"lines": [], "ends": {}}
class Task:
    def __init__(self, act):
        self.act = act
    def __call__(self):
        return self
    def expand(self, shard):
        told["shards"] = shard
        return self
    def __rshift__(self, then):
        told["then"] = then.act.__name__
sdk, exceptions = types.ModuleType("airflow.sdk"), types.ModuleType("airflow.exceptions")
tasks = {}
def task(**options):
    return lambda act: tasks.setdefault(act.__name__, Task(act))
sdk.task, sdk.dag = task, lambda **options: lambda make: make
exceptions.AirflowFailException = type("AirflowFailException", (Exception,), {})
sys.modules.update({"airflow": types.ModuleType("airflow"), "airflow.sdk": sdk, "airflow.exceptions": exceptions})
code = 0
def run(words, check):
    told["lines"].append([*words, check])
    return types.SimpleNamespace(returncode=code)
subprocess.run = run
runpy.run_path(sys.argv[1])
for code in range(8):
    try:
        tasks["download"].act(3)
        told["ends"][code] = "done"
    except Exception as error:
        told["ends"][code] = type(error).__name__
tasks["check"].act()
print(json.dumps(told))
`;

const hasPython = spawnSync('python3', ['--version']).error === undefined;

describe.skipIf(!hasPython)('airflow_dag.py (apt-get install python3)', () => {
  it('has a task per shard, then a check, and fails at once where a retry does not help', async () => {
    const told = JSON.parse(
      execFileSync('python3', ['-c', PYTHON, join(DEPLOY, 'airflow_dag.py')], { encoding: 'utf8' }),
    ) as { lines: string[][]; ends: Record<string, string>; shards: number[]; then: string };
    expect([told.shards, told.then]).toEqual([Array.from({ length: 12 }, (_, shard) => shard), 'check']);
    const [download = [], check = []] = [told.lines[0], told.lines.at(-1)];
    expect([download[0], check[0], download.at(-1), check.at(-1)]).toEqual([
      'cryptodl',
      'cryptodl',
      false,
      true,
    ]);
    await expectAccepted(download.slice(1, -1));
    expect((await cryptodl([...check.slice(1, -1), '--print-options'])).code).toBe(0);
    const endOf = (code: number): string =>
      PERMANENT.includes(code) ? 'AirflowFailException' : 'RuntimeError';
    expect(told.ends).toEqual(
      Object.fromEntries([0, 1, 2, 3, 4, 5, 6, 7].map((code) => [code, code === 0 ? 'done' : endOf(code)])),
    );
  });
});
