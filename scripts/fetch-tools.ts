/**
 * `node scripts/fetch-tools.ts`: sees to it that the tests find Helm and the schemas, before several of them look for
 * one at once.
 */

import { findCrds } from './lib/tools/crds.ts';
import { findHelm } from './lib/tools/helm.ts';
import { findKubernetesValidate } from './lib/tools/kubernetes-validate.ts';

for (const search of await Promise.all([findHelm(), findKubernetesValidate(), findCrds()])) {
  if (search.kind === 'missing') {
    console.error(search.message);
    process.exitCode = 1;
  }
}
