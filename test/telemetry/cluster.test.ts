import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('several workers show their metrics as one: counts are added, the worst age is shown', () => {
  const text = execFileSync(process.execPath, [join(import.meta.dirname, 'support/workers.ts')], { encoding: 'utf8' });
  const lines = text.split('\n');
  for (const line of [
    'postern_checks_total{outcome="allow",code="allow"} 2',
    '# TYPE postern_check_duration_seconds histogram',
    'postern_check_duration_seconds_bucket{le="0.0005"} 0',
    'postern_check_duration_seconds_bucket{le="0.001"} 2',
    'postern_check_duration_seconds_bucket{le="+Inf"} 2',
    'postern_check_duration_seconds_count 2',
    'postern_cache_in_flight{kind="waiting"} 2',
    'postern_feed_age_seconds 2',
  ]) {
    expect(lines).toContain(line);
  }
});
