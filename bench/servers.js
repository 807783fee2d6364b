/** The servers of the benchmark. They are processes of their own, so that no figure contains their work. */
import { fork, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** @import { ChildProcess } from 'node:child_process' */
/** @import { AddressInfo } from 'node:net' */

/**
 * @typedef {object} Server
 * @property {string} name
 * @property {string} url of the objects, without a slash at its end
 * @property {string} listingUrl
 * @property {() => Promise<number | undefined>} requests so far, as far as the server counts them
 * @property {() => void} close
 */

const BIN = fileURLToPath(new URL('../bin/cryptodl.js', import.meta.url));
const WEATHER = fileURLToPath(new URL('weather.js', import.meta.url));

/** Of W4. */
const FAULT_SHARE = 0.04;

/**
 * @param {'static' | 'late' | 'weather'} kind
 * @param {string} archive
 * @param {string} folder for the server's own files
 * @returns {Promise<Server & { faults?: () => Promise<number> }>}
 */
export function serve(kind, archive, folder) {
  return kind === 'static'
    ? serveArchive(archive, folder)
    : serveWeather(archive, kind === 'late' ? 0 : FAULT_SHARE);
}

/**
 * nginx if it is installed, otherwise the program's own server, which answers the listings in both cases.
 * @param {string} archive
 * @param {string} folder for nginx's own files
 * @param {{ key: string, certificate: string }} [tls] files; nginx speaks TLS then, HTTP/1.1 and HTTP/2
 * @returns {Promise<Server>}
 */
export async function serveArchive(archive, folder, tls) {
  const listing = await serveListing(archive);
  const nginx = spawnSync('sh', ['-c', 'command -v nginx'], { encoding: 'utf8' }).stdout.trim();
  if (nginx === '') {
    return {
      name: 'cryptodl serve',
      url: listing.url,
      listingUrl: listing.url,
      requests: () => Promise.resolve(undefined),
      close: () => listing.child.kill(),
    };
  }
  const port = await freePort();
  const statusPort = await freePort();
  const config = nginxConfig(archive, folder, { port, statusPort, tls });
  const child = spawn(nginx, ['-c', config, '-e', join(folder, 'nginx.error')], { stdio: 'ignore' });
  const status = `http://127.0.0.1:${statusPort}/status`;
  await answers(status);
  return {
    name: 'nginx',
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    listingUrl: listing.url,
    requests: () => nginxRequests(status),
    close: () => {
      child.kill();
      listing.child.kill();
    },
  };
}

/**
 * Serves the objects of an archive from memory, with delays and with faults in a share of the answers.
 * @param {string} archive
 * @param {number} faultShare
 * @returns {Promise<Server & { faults: () => Promise<number> }>}
 */
async function serveWeather(archive, faultShare) {
  const listing = await serveListing(archive);
  const child = fork(WEATHER, [archive, String(faultShare)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const { port } = /** @type {{ port: number }} */ (await message(child));
  const counts = async () => {
    const told = message(child);
    child.send('counts');
    return /** @type {{ requests: number, faults: number }} */ (await told);
  };
  return {
    name: `a server with 60 ms median, 400 ms p99 latency and ${faultShare * 100} % faults`,
    url: `http://127.0.0.1:${port}`,
    listingUrl: listing.url,
    requests: async () => (await counts()).requests,
    faults: async () => (await counts()).faults,
    close: () => {
      child.kill();
      listing.child.kill();
    },
  };
}

/** @param {string} directory */
async function serveListing(directory) {
  const child = spawn(process.execPath, [BIN, 'serve', directory, '--port', '0'], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  process.on('exit', () => child.kill());
  /** @type {string} */
  const url = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`cryptodl serve ended with exit code ${code}`)));
    child.stdout.once('data', (chunk) => resolve(String(chunk).trim()));
  });
  return { url, child };
}

/**
 * @param {string} archive
 * @param {string} folder
 * @param {{ port: number, statusPort: number, tls: { key: string, certificate: string } | undefined }} how
 * @returns {string} its path
 */
function nginxConfig(archive, folder, { port, statusPort, tls }) {
  const temp = join(folder, 'nginx');
  mkdirSync(temp, { recursive: true });
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const path = join(folder, 'nginx.conf');
  writeFileSync(
    path,
    `daemon off; ${process.getuid?.() === 0 ? 'user root;' : ''} worker_processes 1; pid ${temp}/pid;
events { worker_connections 1024; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; open_file_cache max=8000;
  ${kinds.map((kind) => `${kind}_temp_path ${temp}/${kind};`).join(' ')}
  server { listen 127.0.0.1:${statusPort}; location = /status { stub_status; } }
  server {
    listen 127.0.0.1:${port}${tls === undefined ? '' : ' ssl http2'};
    ${tls === undefined ? '' : `ssl_certificate ${tls.certificate}; ssl_certificate_key ${tls.key};`}
    location / { root ${archive}; }
  }
}
`,
  );
  return path;
}

/** @param {string} status */
async function nginxRequests(status) {
  const text = await (await fetch(status)).text();
  const [, requests] = /^\s*\d+ \d+ (\d+)/m.exec(text) ?? [];
  return requests === undefined ? undefined : Number(requests);
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** @param {string} url */
async function answers(url) {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    try {
      await (await fetch(url)).text();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  throw new Error(`${url} does not answer`);
}

/** @param {ChildProcess} child */
function message(child) {
  return new Promise((resolve, reject) => {
    const onExit = (/** @type {number | null} */ code) =>
      reject(new Error(`the server ended with exit code ${code}`));
    child.once('exit', onExit);
    child.once('message', (told) => {
      child.off('exit', onExit);
      resolve(told);
    });
  });
}
