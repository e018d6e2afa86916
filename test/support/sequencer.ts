/**
 * The order of the test files: part by part as test/parts.ts lists them, and in a part the longest files of the last
 * run first.
 */

import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { PARTS } from '../parts.ts';

export class PartsInOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const byDuration = await super.sort(files);
    return byDuration.sort((one, other) => placeOf(one) - placeOf(other));
  }
}

function placeOf(file: TestSpecification): number {
  return PARTS.findIndex(({ name }) => name === file.project.name);
}
