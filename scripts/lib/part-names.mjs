/** The parts of the suite that `npm test -- PART` runs alone; test/parts.ts defines them. */
export const PART_NAMES = ['unit', 'database', 'http', 'processes', 'envoy', 'directory', 'console', 'deploy-lint'];
