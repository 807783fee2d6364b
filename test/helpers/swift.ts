/**
 * OpenStack Swift with its S3 API, in processes of this test on free ports of this machine: a real S3 server from Debian's
 * packages. It has no conditional writes.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './prometheus.js';

const PROGRAMS = [
  'swift-proxy-server',
  'swift-account-server',
  'swift-container-server',
  'swift-object-server',
  'swift-ring-builder',
  'memcached',
];
export const HAS_SWIFT =
  PROGRAMS.every((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0) &&
  // Its servers read this file and no other.
  existsSync('/etc/swift/swift.conf');
/** Appended to the titles of suites. */
export const NEEDS_SWIFT = HAS_SWIFT
  ? ''
  : ' (needs OpenStack Swift: apt install swift-proxy swift-account swift-container swift-object memcached)';

export interface SwiftServer {
  readonly url: string;
  /** The variables with which a client finds the server and its credentials. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** The longest start, on a slow machine. */
export const START_MS = 180_000;

/** Resolves when the server answers. Its files are removed when it is closed. */
export async function startSwift(): Promise<SwiftServer> {
  const folder = mkdtempSync(join(tmpdir(), 'cryptodl-swift-'));
  const [memcached, account, container, object, proxy] = await Promise.all(
    Array.from({ length: 5 }, () => freePort()),
  );
  const processes: ChildProcess[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(
      processes.map(async (process) => {
        if (process.exitCode !== null || process.signalCode !== null) return;
        process.kill('SIGKILL');
        await once(process, 'exit');
      }),
    );
    rmSync(folder, { recursive: true, force: true });
  };
  const start = (name: string, words: readonly string[]): void => {
    const log = join(folder, `${name}.log`);
    processes.push(spawn('sh', ['-c', 'exec "$@" >"$0" 2>&1', log, name, ...words], { stdio: 'ignore' }));
  };
  try {
    mkdirSync(join(folder, 'devices', 'disk'), { recursive: true });
    const ports = { account, container, object };
    for (const [name, port] of Object.entries(ports)) makeRing(folder, name, Number(port));
    start('memcached', ['-l', '127.0.0.1', '-p', String(memcached), '-u', userInfo().username]);
    for (const [name, port] of Object.entries(ports)) {
      const path = join(folder, `${name}-server.conf`);
      writeFileSync(path, storageConfig(folder, name, Number(port)));
      start(`swift-${name}-server`, [path]);
    }
    // The proxy avoids a server for a minute that did not answer it.
    for (const port of Object.values(ports)) await untilReady(`http://127.0.0.1:${port}/`, folder, processes);
    const path = join(folder, 'proxy-server.conf');
    writeFileSync(path, proxyConfig(folder, Number(proxy), Number(memcached)));
    start('swift-proxy-server', [path]);
    const url = `http://127.0.0.1:${proxy}`;
    await untilReady(`${url}/healthcheck`, folder, processes);
    const environment = {
      AWS_ENDPOINT_URL_S3: url,
      AWS_ACCESS_KEY_ID: 'test:tester',
      AWS_SECRET_ACCESS_KEY: 'testing',
      AWS_REGION: 'us-east-1',
      AWS_EC2_METADATA_DISABLED: 'true',
    };
    return { url, environment, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** One partition copy on one disk. */
function makeRing(folder: string, name: string, port: number): void {
  const builder = join(folder, `${name}.builder`);
  for (const words of [
    ['create', '4', '1', '1'],
    ['add', `r1z1-127.0.0.1:${port}/disk`, '1'],
    ['rebalance'],
  ]) {
    const { status, stderr, stdout } = spawnSync('swift-ring-builder', [builder, ...words]);
    // 1 is a warning.
    if (status === null || status > 1)
      throw new Error(`swift-ring-builder: ${String(stderr)}${String(stdout)}`);
  }
}

function storageConfig(folder: string, name: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
devices = ${join(folder, 'devices')}
mount_check = false
disable_fallocate = true
recon_cache_path = ${folder}
[pipeline:main]
pipeline = ${name}-server
[app:${name}-server]
use = egg:swift#${name}
`;
}

function proxyConfig(folder: string, port: number, memcached: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
workers = 0
user = ${userInfo().username}
swift_dir = ${folder}
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats bulk s3api tempauth copy slo dlo versioned_writes symlink proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${memcached}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
[filter:dlo]
use = egg:swift#dlo
[filter:versioned_writes]
use = egg:swift#versioned_writes
allow_versioned_writes = true
[filter:symlink]
use = egg:swift#symlink
`;
}

async function untilReady(url: string, folder: string, processes: readonly ChildProcess[]): Promise<void> {
  const until = Date.now() + START_MS / 3;
  for (;;) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    const isEnded = processes.some(({ exitCode }) => exitCode !== null);
    if (isEnded || Date.now() > until) {
      const logs = spawnSync('sh', ['-c', `tail -n 5 ${folder}/*.log`], { encoding: 'utf8' }).stdout;
      throw new Error(`Swift does not start: ${logs}`);
    }
    await sleep(100);
  }
}
