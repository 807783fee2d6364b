/** The files of `deploy/`: their commands are those of the program, and they take its exit codes for what they mean. */
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
