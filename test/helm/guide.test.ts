/** docs/kubernetes.md: its values are taken by the chart, and its names are those of the objects. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { CHART, helm, MINIMAL, NAMESPACE, ROOT } from './support.ts';

const GUIDE = await readFile(join(ROOT, 'docs/kubernetes.md'), 'utf8');
/** A block that begins with the name of another file is none of this chart's values. */
const VALUES = [...GUIDE.matchAll(/```yaml\n(?!# Chart\.yaml)([\s\S]*?)```/g)].map(([, yaml = '']) => yaml);
/** Values that the table of meshes names in a line. */
const INLINE = [...GUIDE.matchAll(/`(mesh\.\w+): (\{[^`]*\})`/g)].map(
  ([, path = '', value = '']) => `${path.replace('.', ': { ')}: ${value} }\n`,
);

it('the guide has values to try', () => {
  expect([VALUES.length, INLINE.length]).toEqual([8, 2]);
});

it.each([...VALUES, ...INLINE])('the chart takes the guide’s values %j', async (yaml) => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-guide-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'values.yaml'), yaml);
  const { ok, output } = await helm(
    'template',
    'postern',
    CHART,
    '-n',
    NAMESPACE,
    ...MINIMAL,
    '-f',
    join(folder, 'values.yaml'),
  );
  expect(ok ? '' : output).toBe('');
});

it('the Services and Secrets that the guide names are those of the chart', async () => {
  const tls = ['tls.enabled=true', 'tls.certManager.enabled=true', 'tls.certManager.issuerRef.name=a'];
  const { output } = await helm(
    'template',
    'postern',
    CHART,
    '-n',
    NAMESPACE,
    ...MINIMAL,
    ...tls.flatMap((set) => ['--set', set]),
  );
  const names = manifestsOf(output).map(({ metadata }) => metadata.name);
  expect(names).toEqual(
    expect.arrayContaining(['postern-grpc', 'postern-grpc-headless', 'postern-http', 'postern-admin']),
  );
  for (const secret of ['postern-grpc-tls', 'postern-envoy-client-tls']) {
    expect(GUIDE).toContain(secret);
    expect(output).toContain(`secretName: ${secret}`);
  }
});
