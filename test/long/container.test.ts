/**
 * The container: the steps of the Dockerfile, replayed without a builder. bubblewrap gives the program a root of its own that
 * is read-only except for /data. The base image and the step with apt-get are the machine's own Debian.
 */
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, cpSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { makeArchive } from '../../scripts/synthetic-archive.js';
import { startArchive } from '../helpers/archive.js';
import type { TestArchive } from '../helpers/archive.js';
import { scratchFolder } from '../helpers/folders.js';
import { filesBelow, readParquet } from '../helpers/lake.js';

const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));
const NODE_USER = 1000;
const needed = ['bwrap', 'tini'].filter((program) => spawnSync('which', [program]).status !== 0);
const isRoot = process.getuid?.() === 0;
const why = isRoot ? `needs ${needed.join(' and ')}: apt-get install bubblewrap tini` : 'needs root';
const CAN_REPLAY = isRoot && needed.length === 0;

interface Stage {
  /** The folder that stands for `/`. */
  readonly root: string;
  workdir: string;
  readonly environment: Record<string, string>;
  user: string;
  entrypoint: readonly string[];
  readonly volumes: string[];
}

describe(`the container${CAN_REPLAY ? '' : ` (${why})`}`, { skip: !CAN_REPLAY }, () => {
  const scratch = scratchFolder();
  let archive: TestArchive;
  let image: Stage;
  beforeAll(async () => {
    makeArchive(join(scratch, 'archive'), {
      market: 'um',
      dataset: 'klines',
      interval: '1h',
      symbols: ['BTCUSDT', 'ETHUSDT'],
      from: '2026-11-14',
      to: '2026-11-20',
      cadence: 'daily',
    });
    archive = await startArchive(join(scratch, 'archive'));
    image = replay(readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8'), scratch);
  }, 300_000);
  afterAll(() => archive.close());
  afterEach(() => {
    archive.fault = undefined;
  });

  const WEEK = ['vision', '--symbols', 'BTCUSDT,ETHUSDT', '--interval', '1h', '--days', '7'];
  const environment = (): Record<string, string> => ({
    CRYPTODL_ARCHIVE_URL: archive.url,
    CRYPTODL_NOW: '2026-11-21T12:00:00Z',
  });
  const lake = (data: string): string => join(data, 'lake/binance/um/klines/interval=1h');

  it('downloads into the volume as a user without rights, with a read-only root, and continues', async () => {
    const data = volume(scratch, 'week');
    const first = await start(image, data, WEEK, environment()).ended;
    expect(first.code).toBe(0);
    expect(first.stderr).toContain('14 ok');
    const files = filesBelow(lake(data), '.parquet').map((file) => join(lake(data), file));
    const rows = (await Promise.all(files.map((file) => readParquet(file)))).flat();
    expect(rows).toHaveLength(2 * 7 * 24);
    expect(files.map((file) => statSync(file).uid)).toEqual([NODE_USER, NODE_USER]);
    const second = await start(image, data, WEEK, environment()).ended;
    expect(second.stderr).toContain('14 skipped');
  });

  it('ends with 143 after SIGTERM, and the next run finds the committed objects', async () => {
    const data = volume(scratch, 'stopped');
    const args = [...WEEK, '--partition', 'day', '--concurrency', '1'];
    let zips = 0;
    const run = start(image, data, args, environment());
    archive.fault = (path) => {
      if (!path.endsWith('.zip')) return false;
      zips += 1;
      if (zips === 6) run.kill('SIGTERM');
      return false;
    };
    const stopped = await run.ended;
    expect(stopped.code).toBe(143);
    const committed = filesBelow(lake(data), '.parquet').length;
    expect(committed).toBeGreaterThan(3);
    const next = await start(image, data, args, environment()).ended;
    expect(next.stderr).toContain(`held       ${committed} objects`);
    expect(filesBelow(lake(data), '.parquet')).toHaveLength(14);
  });

  it('says what is wrong with a volume that its user may not write to', async () => {
    const data = volume(scratch, 'foreign');
    chownSync(data, 0, 0);
    const refused = await start(image, data, WEEK, environment()).ended;
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('--out lake cannot be used (no permission)');
  });

  it('runs the service of compose.yaml at once and every day, and stops it with 143', async () => {
    const service = composeService();
    expect(service.read_only).toBe(true);
    const data = volume(scratch, 'service');
    const [tini, dashes, ...program] = service.entrypoint;
    const run = start(
      { ...image, entrypoint: [tini ?? '', dashes ?? '', ...program] },
      data,
      service.command,
      { ...environment(), ...service.environment },
    );
    const stderr = await run.saying('the next run begins at 03:30 UTC');
    expect(stderr).toContain('every-day: exit code 0');
    run.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 143 });
    expect(filesBelow(lake(data), '.parquet')).toHaveLength(2);
  });

  it('commits before the service ends after a Ctrl-C of the terminal, which signals the whole group', async () => {
    const data = volume(scratch, 'terminal');
    const { command, entrypoint, environment: variables } = composeService();
    let zips = 0;
    const run = start({ ...image, entrypoint }, data, [...command, '--concurrency', '1'], {
      ...environment(),
      ...variables,
    });
    archive.fault = (path) => {
      if (!path.endsWith('.zip')) return false;
      zips += 1;
      if (zips === 6) run.killGroup('SIGINT');
      return false;
    };
    expect(await run.ended).toMatchObject({ code: 130 });
    expect(filesBelow(lake(data), '.parquet').length).toBeGreaterThan(0);
  });
});

interface ComposeService {
  readonly read_only: boolean;
  readonly environment: Record<string, string>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

function composeService(): ComposeService {
  const { services } = parse(readFileSync(join(REPOSITORY, 'compose.yaml'), 'utf8')) as {
    services: { cryptodl: ComposeService };
  };
  return services.cryptodl;
}

/** Executes the instructions; returns the last stage. Throws for an instruction that it does not know. */
function replay(dockerfile: string, scratch: string): Stage {
  const stages = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const line of dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')) {
    const [instruction = '', ...words] = line.split(' ');
    const rest = words.join(' ');
    if (instruction === '') continue;
    if (instruction === 'FROM') {
      const name = words[2] ?? 'image';
      stage = newStage(join(scratch, name));
      stages.set(name, stage);
    } else if (stage === undefined) throw new Error(`${line}: before FROM`);
    else if (instruction === 'WORKDIR') {
      stage.workdir = rest;
      mkdirSync(join(stage.root, rest), { recursive: true });
    } else if (instruction === 'COPY') copy(stages, stage, words);
    else if (instruction === 'RUN') runStep(stage, rest);
    else if (instruction === 'ENV') {
      for (const pair of words) stage.environment[pair.split('=')[0] ?? ''] = pair.split('=')[1] ?? '';
    } else if (instruction === 'USER') stage.user = rest;
    else if (instruction === 'VOLUME') stage.volumes.push(rest);
    else if (instruction === 'ENTRYPOINT') stage.entrypoint = JSON.parse(rest) as string[];
    else if (instruction !== 'CMD') throw new Error(`${line}: an unknown instruction`);
  }
  if (stage === undefined) throw new Error('no FROM');
  return stage;
}

function newStage(root: string): Stage {
  for (const folder of ['etc', 'proc', 'dev', 'usr', 'tmp', 'usr-local/bin', 'home/node'])
    mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
  writeFileSync(join(root, 'usr-local/bin/node'), '');
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) symlinkSync(`usr/${name}`, join(root, name));
  return { root, workdir: '/', environment: {}, user: 'root', entrypoint: [], volumes: [] };
}

function copy(stages: ReadonlyMap<string, Stage>, stage: Stage, words: readonly string[]): void {
  const from = words[0]?.startsWith('--from=') === true ? words[0].slice('--from='.length) : undefined;
  const paths = words.slice(from === undefined ? 0 : 1);
  const target = paths.at(-1) ?? '';
  const sources = paths.slice(0, -1);
  const base = from === undefined ? REPOSITORY : stages.get(from)?.root;
  if (base === undefined) throw new Error(`COPY --from=${from ?? ''}: an unknown stage`);
  const inside = posix.resolve(stage.workdir, target);
  const into = join(stage.root, inside.replace(/^\/usr\/local\//, '/usr-local/'));
  for (const source of sources) {
    const path = target.endsWith('/') ? join(into, basename(source)) : into;
    mkdirSync(dirname(path), { recursive: true });
    cpSync(join(base, source), path, { recursive: true, verbatimSymlinks: true });
  }
}

/** Steps of the first stage run in its folder; those of the last one in its root. */
function runStep(stage: Stage, command: string): void {
  // The machine has the packages: without them the suite is skipped.
  if (command.startsWith('apt-get ')) return;
  const isBuild = stage.workdir === '/build';
  const step = isBuild
    ? spawnSync('sh', ['-c', command], { cwd: join(stage.root, stage.workdir), encoding: 'utf8' })
    : spawnSync('bwrap', [...sandbox(stage, ['--bind']), '--chdir', stage.workdir, 'sh', '-c', command], {
        encoding: 'utf8',
      });
  if (step.status !== 0) throw new Error(`${command}: ${step.stderr}`);
}

/** A root of the stage's files, with the programs of the machine in /usr. */
function sandbox({ root }: Stage, [bind]: readonly ['--bind' | '--ro-bind']): string[] {
  const files = [bind, root, '/', '--ro-bind', '/usr', '/usr', bind, join(root, 'usr-local'), '/usr/local'];
  const node = ['--ro-bind', process.execPath, '/usr/local/bin/node'];
  const system = ['--proc', '/proc', '--dev', '/dev', '--clearenv'];
  return [...files, ...node, ...system, '--setenv', 'PATH', '/usr/local/bin:/usr/bin:/bin'];
}

function volume(scratch: string, name: string): string {
  const path = join(scratch, `volume-${name}`);
  mkdirSync(path);
  chownSync(path, NODE_USER, NODE_USER);
  return path;
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Started {
  readonly ended: Promise<Ended>;
  /** Signals the first process of the container. */
  kill(signal: NodeJS.Signals): void;
  /** Signals all processes of the container's group. */
  killGroup(signal: NodeJS.Signals): void;
  /** Resolves with stderr when it has this text. */
  saying(text: string): Promise<string>;
}

/** `docker run --read-only -v data:/data image args`. */
function start(
  stage: Stage,
  data: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Started {
  if (stage.user !== 'node') throw new Error('the container runs as root');
  const variables = Object.entries({ ...stage.environment, ...environment });
  const firstProcess = ['--unshare-pid', '--as-pid-1', '--info-fd', '3'];
  const unprivileged = [
    'setpriv',
    '--reuid',
    String(NODE_USER),
    '--regid',
    String(NODE_USER),
    '--clear-groups',
  ];
  const child = spawn(
    'bwrap',
    [
      ...sandbox(stage, ['--ro-bind']),
      ...stage.volumes.flatMap((path) => ['--bind', data, path]),
      ...variables.flatMap(([name, value]) => ['--setenv', name, value]),
      ...firstProcess,
      '--chdir',
      stage.workdir,
      ...unprivileged,
      ...stage.entrypoint,
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  let stdout = '';
  let stderr = '';
  let info = '';
  const firstPid = (): number => (JSON.parse(info) as { 'child-pid': number })['child-pid'];
  const waiting = new Map<string, (stderr: string) => void>();
  child.stdout?.on('data', (chunk: Buffer) => (stdout += String(chunk)));
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += String(chunk);
    for (const [text, resolve] of waiting) if (stderr.includes(text)) resolve(stderr);
  });
  child.stdio[3]?.on('data', (chunk: Buffer) => (info += String(chunk)));
  return {
    ended: new Promise((resolve) => {
      child.on('close', (code) => {
        resolve({ code, stdout, stderr });
      });
    }),
    kill: (signal) => {
      process.kill(firstPid(), signal);
    },
    killGroup: (signal) => {
      // tini puts the program into a group of its own.
      const children = readFileSync(`/proc/${firstPid()}/task/${firstPid()}/children`, 'utf8');
      process.kill(-Number(children.trim()), signal);
    },
    saying: (text) =>
      new Promise((resolve) => {
        waiting.set(text, resolve);
      }),
  };
}
