/** The validation of manifests: what the tools let pass by themselves is a flaw here. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { findCrds, strict } from '../../scripts/lib/tools/crds.ts';
import {
  findKubernetesValidate,
  kubernetesValidate,
  strictSchemas,
} from '../../scripts/lib/tools/kubernetes-validate.ts';
import { createManifestValidator, type ManifestValidator } from '../../scripts/lib/tools/manifests.ts';
import { found, ROOT } from './support.ts';

const FETCH_MS = 300_000;
let validator: ManifestValidator;

beforeAll(async () => {
  const [kubernetes, crds] = [await findKubernetesValidate(), await findCrds()];
  validator = createManifestValidator(strictSchemas(found(kubernetes)), found(crds));
}, FETCH_MS);

function object(apiVersion: string, kind: string, rest: string): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: x }\n${rest}\n`;
}

it.each([
  ['an empty text', ''],
  ['a text of comments only', '# nothing\n---\n# here\n'],
  ['an unknown member of a Service', object('v1', 'Service', 'spec: { ports: [{ port: 80 }], selectr: {} }')],
  [
    'a wrong type in a Deployment',
    object('apps/v1', 'Deployment', 'spec: { replicas: two, selector: {}, template: {} }'),
  ],
  ['a kind that is unknown', object('example.com/v1', 'Thing', 'spec: {}')],
  ['a kind of another version', object('autoscaling/v9', 'HorizontalPodAutoscaler', 'spec: {}')],
  [
    'an unknown member of a SecurityPolicy',
    object('gateway.envoyproxy.io/v1alpha1', 'SecurityPolicy', 'spec: { extAuth: { grpcc: {} } }'),
  ],
  [
    'an unknown member of an AuthorizationPolicy',
    object('security.istio.io/v1', 'AuthorizationPolicy', 'spec: { action: CUSTOM, providers: { name: a } }'),
  ],
  ['an action that Istio has not', object('security.istio.io/v1', 'AuthorizationPolicy', 'spec: { action: ASK }')],
  ['a Certificate without a Secret', object('cert-manager.io/v1', 'Certificate', 'spec: { issuerRef: { name: a } }')],
])('the validator finds a flaw in %s', async (_what, text) => {
  expect(await validator.validate(text)).not.toEqual([]);
});

it('the validator refuses a member that stands twice in one map', async () => {
  await expect(validator.validate(object('v1', 'ConfigMap', 'data: { a: b }\ndata: { c: d }'))).rejects.toThrow(
    'unique',
  );
});

it('kubernetes-validate itself refuses an unknown member', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-validate-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [good, bad] = [join(folder, 'good.yaml'), join(folder, 'bad.yaml')];
  await writeFile(good, object('v1', 'Service', 'spec: { ports: [{ port: 80 }] }'));
  await writeFile(bad, object('v1', 'Service', 'spec: { ports: [{ port: 80 }], selectr: {} }'));
  const tool = found(await findKubernetesValidate());
  expect((await kubernetesValidate(tool, [good])).ok).toBe(true);
  expect((await kubernetesValidate(tool, [bad])).ok).toBe(false);
});

it('a schema made strict takes no other members, except where anything is meant', () => {
  const made = strict({
    type: 'object',
    properties: {
      closed: { type: 'object', description: 'x', properties: { description: { type: 'string' } } },
      open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'string' } } },
      port: { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true },
      word: { type: 'string', pattern: '^(?i)(abort|warn)?$' },
    },
  });
  expect(made).toEqual({
    type: 'object',
    additionalProperties: false,
    properties: {
      closed: { type: 'object', additionalProperties: false, properties: { description: { type: 'string' } } },
      open: { type: 'object', properties: { a: { type: 'string' } } },
      port: { anyOf: [{ type: 'integer' }, { type: 'string' }], type: ['integer', 'string'] },
      word: { type: 'string', pattern: '(?i:^(abort|warn)?$)' },
    },
  });
});

it('the validator finds no flaw in the CronJob that verifies the routes, and in the objects that it needs', async () => {
  const guide = await readFile(join(ROOT, 'docs/no-bypass.md'), 'utf8');
  const [block = ''] = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, text = '']) =>
    text.includes('kind: CronJob') ? [text] : [],
  );
  expect(await validator.validate(block)).toEqual([]);
});
