import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // More than there are cores, because a test that drives a browser or several servers mostly waits for them.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // As long as a slow machine may need: who polls waits for an event, and no longer.
    expect: { poll: { timeout: 20_000 } },
  },
});
