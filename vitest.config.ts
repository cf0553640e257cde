import { defineConfig } from 'vitest/config';

const shared = {
  globalSetup: ['test/support/global-setup.ts'],
  testTimeout: 30_000,
  hookTimeout: 60_000,
  // Two cores: more workers only make the servers and each other slower.
  maxWorkers: 2,
};

export default defineConfig({
  test: {
    // `npm test` runs the first, `npm run test:fault` and `npm run test:e2e` the others.
    projects: [
      {
        test: {
          ...shared,
          name: 'main',
          globalSetup: [...shared.globalSetup, 'test/support/mysql-setup.ts'],
          include: ['test/**/*.test.ts'],
          exclude: ['test/fault/**', 'test/e2e/**'],
        },
      },
      { test: { ...shared, name: 'fault', include: ['test/fault/**/*.test.ts'], testTimeout: 120_000 } },
      // Whole processes on a busy machine: a test that ran out of time is tried once more.
      {
        test: { ...shared, name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 300_000, retry: 1 },
      },
    ],
    // Read by .ci/run, which prints the totals of all suites at the end.
    ...(process.env['CI']
      ? { reporters: ['default', ['json', { outputFile: '.vitest/results.json' }]] }
      : {}),
  },
});
