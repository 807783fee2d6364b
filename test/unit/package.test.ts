/** What an installation brings: read from the lockfile, as npm does. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');
const lockfile = JSON.parse(read('package-lock.json')) as { packages: Readonly<Record<string, Locked>> };
const manifest = JSON.parse(read('package.json')) as {
  devDependencies: Readonly<Record<string, string>>;
  files: readonly string[];
  scripts: Readonly<Record<string, string>>;
};
const { '': _, ...packages } = lockfile.packages;

describe('the lockfile', () => {
  it('has the integrity of every package that the program runs with', () => {
    const without = Object.keys(packages).filter(
      (path) => packages[path]?.dev !== true && packages[path]?.integrity === undefined,
    );
    expect(without).toEqual([]);
  });

  it('has the binary of DuckDB for every platform, in the version of its client', () => {
    const client = packages['node_modules/@duckdb/node-bindings'];
    const bindings = Object.keys(client?.optionalDependencies ?? {});
    expect(bindings).toEqual(
      expect.arrayContaining(
        ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64', 'win32-arm64', 'win32-x64'].map(
          (platform) => `@duckdb/node-bindings-${platform}`,
        ),
      ),
    );
    const versions = bindings.map((name) => packages[`node_modules/${name}`]?.version);
    expect(versions).toEqual(bindings.map(() => client?.version));
  });

  it('brings no tool of the development with npm ci --omit=dev', () => {
    const brought = Object.keys(manifest.devDependencies).filter(
      (name) => packages[`node_modules/${name}`]?.dev !== true,
    );
    expect(brought).toEqual([]);
  });

  it('has no package that runs a script when it is installed', () => {
    // BullMQ, an optional peer, is faster with msgpackr-extract, and works without.
    const known = ['node_modules/msgpackr-extract'];
    const scripted = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript === true);
    expect(scripted).toEqual(known);
    for (const path of known) expect(packages[path]).toMatchObject({ dev: true, optional: true });
  });
});

describe('npm pack', () => {
  it('contains each file that the README links to', () => {
    const links = [...read('README.md').matchAll(/\]\(([^):#]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path);
    expect(links.length).toBeGreaterThan(10);
    const missing = links.filter(
      (path) =>
        !existsSync(fileURLToPath(new URL(`../../${path}`, import.meta.url))) ||
        !manifest.files.some((kept) => path === kept || path.startsWith(`${kept}/`)),
    );
    expect(missing).toEqual([]);
  });

  it('builds its content before it is packed; .npmrc must not prevent that', () => {
    expect(manifest.scripts['prepack']).toBe('npm run --silent build');
    expect(read('.npmrc')).not.toContain('ignore-scripts');
  });
});
