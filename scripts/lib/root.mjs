import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The project's folder. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MODULES = join(ROOT, 'node_modules');
export const BIN = join(MODULES, '.bin');
