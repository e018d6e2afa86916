import { defineConfig, type TestUserConfig } from 'vitest/config';
import { filesOfParts, PARTS } from './test/parts.ts';
import { ResultsReporter } from './test/support/reporter.ts';
import { PartsInOrder } from './test/support/sequencer.ts';

const files = filesOfParts();
const results = process.env['TEST_RESULTS_FILE'];

/** What the parts have in common. Parts that extended this file would read it again, and start a PostgreSQL each. */
const COMMON = {
  pool: 'forks',
  // Each file imports what the files before it in the same worker have imported already: that is most of the cost of a small file.
  isolate: false,
  // Node imports the files as it does in the product, and keeps what it compiled for the next worker (`NODE_COMPILE_CACHE`).
  experimental: { viteModuleRunner: false, nodeLoader: false },
  // More than there are cores, because a test that drives a browser or several servers also waits for them.
  maxWorkers: 4,
  // A worker ends its browser and its servers, and a slow machine may need longer for that than the usual 10 s.
  teardownTimeout: 120_000,
  setupFiles: ['test/support/setup.ts'],
  testTimeout: 120_000,
  hookTimeout: 120_000,
  // As long as a slow machine may need. A poll ends with the event.
  expect: { poll: { timeout: 20_000 } },
} satisfies TestUserConfig;

/** A poll of a page costs it a search for elements by role: polls at vitest's 50 ms take a twelfth of the part's processor time. */
const CONSOLE = { expect: { poll: { ...COMMON.expect.poll, interval: 200 } } } satisfies TestUserConfig;

export default defineConfig({
  test: {
    ...COMMON,
    reporters: ['default', ...(results === undefined ? [] : [new ResultsReporter(results)])],
    globalSetup: ['test/support/global-setup.ts'],
    sequence: { sequencer: PartsInOrder },
    projects: PARTS.map(({ name }) => ({
      test: { ...COMMON, ...(name === 'console' ? CONSOLE : {}), name, include: [...(files.get(name) ?? [])] },
    })),
  },
});
