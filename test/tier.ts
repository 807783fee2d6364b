/** What the configurations of all tiers have in common. */
import { defineConfig } from 'vitest/config';
import type { ViteUserConfig } from 'vitest/config';

const REPORT = process.env['CRYPTODL_TEST_REPORT'];

/** `folders`: of test/, as in a glob. */
export function tier(folders: string, more: ViteUserConfig['test'] = {}): ViteUserConfig {
  return defineConfig({
    test: {
      // CI counts the tests of a tier from this file.
      reporters: REPORT === undefined ? ['default'] : ['default', ['json', { outputFile: REPORT }]],
      include: [`test/${folders}/**/*.test.ts`],
      // A working folder and a umask belong to a process.
      pool: 'forks',
      // The built program is loaded as it is.
      server: { deps: { external: [/\/dist\//] } },
      testTimeout: 60_000,
      hookTimeout: 60_000,
      // Two cores: most suites start processes of their own.
      maxWorkers: 2,
      ...more,
    },
  });
}
