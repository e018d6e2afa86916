/**
 * `node scripts/mesh-schemas.ts FOLDER`: makes `test/mesh/schemas.json`. FOLDER is Go's module cache with the modules
 * in it that scripts/lib/mesh/schemas.ts names (`go mod download MODULE`; AI Gateway is no public Go module: put its
 * release there under the same name).
 */

import { writeFileSync } from 'node:fs';
import { SOURCES, schemasOf } from './lib/mesh/schemas.ts';

const [cache] = process.argv.slice(2);
if (cache === undefined) {
  console.error('Name the folder of Go modules: node scripts/mesh-schemas.ts "$(go env GOMODCACHE)"');
  process.exit(2);
}
const schemas = Object.assign({}, ...SOURCES.map((source) => schemasOf(source, cache)));
writeFileSync(new URL('../test/mesh/schemas.json', import.meta.url), `${JSON.stringify(schemas)}\n`);
console.log(`${Object.keys(schemas).length} schemas`);
