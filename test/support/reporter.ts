/** Writes what became of every test, and what every file cost, to the file that TEST_RESULTS_FILE names. */

import { writeFileSync } from 'node:fs';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import type { TestResults } from '../../scripts/lib/test-report.d.mts';

export class ResultsReporter implements Reporter {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const results: TestResults = {
      files: modules.map((module) => {
        const { collectDuration, duration, setupDuration, prepareDuration } = module.diagnostic();
        return {
          file: module.relativeModuleId,
          part: module.project.name,
          isBroken: module.state() === 'failed' && module.errors().length > 0,
          importMs: collectDuration + setupDuration + prepareDuration,
          testsMs: duration,
          processorMs: module.meta().processorMs,
          tests: [...module.children.allTests()].map((test) => ({
            name: test.fullName,
            state: stateOf(test),
            ms: test.diagnostic()?.duration ?? 0,
          })),
        };
      }),
      unhandledErrors: unhandledErrors.length,
    };
    writeFileSync(this.#path, JSON.stringify(results));
  }
}

function stateOf(test: TestCase): 'passed' | 'failed' | 'skipped' {
  const { state } = test.result();
  return state === 'pending' ? 'skipped' : state;
}
