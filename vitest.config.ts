import { defineConfig } from 'vitest/config';
import { filesOfParts, PARTS } from './test/parts.ts';
import { ResultsReporter } from './test/support/reporter.ts';
import { PartsInOrder } from './test/support/sequencer.ts';

const files = filesOfParts();
const results = process.env['TEST_RESULTS_FILE'];

export default defineConfig({
  test: {
    reporters: ['default', ...(results === undefined ? [] : [new ResultsReporter(results)])],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // Each file imports what the files before it in the same worker have imported already: that is most of the cost of a small file.
    isolate: false,
    // Node imports the files as it does in the product, and keeps what it compiled for the next worker (`NODE_COMPILE_CACHE`).
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // More than there are cores, because a test that drives a browser or several servers also waits for them.
    maxWorkers: 4,
    // A worker ends its browser and its servers, and a slow machine may need longer for that than the usual 10 s.
    teardownTimeout: 120_000,
    sequence: { sequencer: PartsInOrder },
    projects: PARTS.map(({ name }) => ({
      extends: true,
      test: {
        name,
        include: [...(files.get(name) ?? [])],
        setupFiles: ['test/support/setup.ts'],
        testTimeout: 120_000,
        hookTimeout: 120_000,
        // As long as a slow machine may need. A poll ends with the event.
        expect: { poll: { timeout: 20_000 } },
      },
    })),
  },
});
