/** What one run of the tests came to. */
export interface TestResults {
  readonly files: readonly FileResult[];
  /** Errors outside of any test. */
  readonly unhandledErrors: number;
}

export interface FileResult {
  /** From the project's folder. */
  readonly file: string;
  readonly part: string;
  /** True if the file could not be loaded, or a hook of it failed. */
  readonly isBroken: boolean;
  /** Milliseconds until the file and its imports were loaded. */
  readonly importMs: number;
  /** Milliseconds of the tests and their hooks. */
  readonly testsMs: number;
  /** Processor time, milliseconds; absent where the system does not report it. */
  readonly processorMs: number | undefined;
  readonly tests: readonly TestResult[];
}

export interface TestResult {
  readonly name: string;
  readonly state: 'passed' | 'failed' | 'skipped';
  readonly ms: number;
}

/** `N passed, N failed`. A file that could not be loaded, an error outside of any test, or no result at all is a failure. */
export function summaryOf(results: TestResults | undefined): string;

/** The parts with their sums, the 20 slowest files and the 20 slowest tests, as lines of text. */
export function reportOf(results: TestResults): string;

/**
 * The processor time that the machine has spent since its start, in seconds. The difference of two calls is the cost of a run if nothing
 * else runs: the processes of a browser are nobody's children, so no sum over child processes has them.
 */
export function processorSeconds(): number;
