/** What the configurations of all tiers have in common. */
import { defineConfig } from 'vitest/config';
import type { ViteUserConfig } from 'vitest/config';
import type { Reporter } from 'vitest/node';

const REPORT = process.env['CRYPTODL_TEST_REPORT'];

/** Names the tests that needed their second try, so that a later change can make them sure. */
const secondTries: Reporter = {
  onTestRunEnd: (modules) => {
    for (const { children } of modules)
      for (const test of children.allTests())
        if (test.diagnostic()?.flaky === true)
          process.stdout.write(`passed at the second try: ${test.fullName}\n`);
  },
};

/** `folders`: of test/, as in a glob. */
export function tier(folders: string, more: ViteUserConfig['test'] = {}): ViteUserConfig {
  return defineConfig({
    test: {
      // CI counts the tests of a tier from this file.
      reporters:
        REPORT === undefined ? ['default'] : ['default', ['json', { outputFile: REPORT }], secondTries],
      // CI runs thousands of processes on two busy cores. A test that fails twice there is broken.
      retry: REPORT === undefined ? 0 : 1,
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
