/**
 * `node scripts/fetch-envoy.ts`: sees to it that the tests find their Envoy, before several of them look for it at
 * once.
 */

import { findEnvoy } from '../src/cli/envoy.ts';

const search = await findEnvoy(process.env, (line) => console.log(line));
if (search.kind === 'missing') {
  console.error(search.message);
  process.exitCode = 1;
} else {
  console.log(search.path);
}
