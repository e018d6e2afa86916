/** The guides name every setting of a directory, and their configurations are accepted. */

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configFile } from '../../src/config/file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { makeAuthority } from '../support/certificates.ts';

const guide = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
test('the guide to directories names every setting below ldap', () => {
  const text = guide('ldap.md');
  for (const { path } of ALL_SETTINGS) {
    const member = /^ldap\.(.+)/.exec(path)?.[1];
    if (member !== undefined) expect([path, new RegExp(`[\`\\s.-]${member}[\`:]`).test(text)]).toEqual([path, true]);
  }
});

/**
 * Blocks that are no configuration of Postern: setup files, values of the chart, objects of Kubernetes, and
 * directories, which have tests of their own.
 */
const OTHER_PAGES = ['budgets.md', 'declarative.md', 'kubernetes.md', 'ldap.md', 'webhooks.md'];

const DOCS = new URL('../../docs/', import.meta.url);
const configurations = readdirSync(DOCS)
  .filter((page) => page.endsWith('.md') && !OTHER_PAGES.includes(page))
  .flatMap((page) =>
    [...readFileSync(new URL(page, DOCS), 'utf8').matchAll(/^ *```yaml\n(.*?)^ *```$/gms)].map(([, yaml = ''], i) => ({
      page,
      i,
      yaml,
    })),
  )
  // `jobs`: a workflow of GitHub Actions. `binds`: agentgateway. `kind`: kube-state-metrics.
  .filter(({ yaml }) => !/^ *(apiVersion|meshConfig|jobs|binds):|^kind:/m.test(yaml));

const { certPem, keyPem } = makeAuthority();

describe('Postern accepts each configuration of a guide', () => {
  test.each(configurations)('$page, block $i', ({ yaml }) => {
    const folder = mkdtempSync(join(tmpdir(), 'postern-guide-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'postern.yaml');
    writeFileSync(join(folder, 'secret'), 'o'.repeat(32));
    writeFileSync(join(folder, 'crt'), certPem);
    writeFileSync(join(folder, 'key'), keyPem);
    const made = (path: string): string =>
      join(folder, /\.(crt|pem)$/.test(path) ? 'crt' : /\.key$/.test(path) ? 'key' : 'secret');
    writeFileSync(file, yaml.replaceAll(/\/etc\/[\w./-]+/g, made));
    const loaded = loadConfig({ file: configFile(file), env: { POSTERN_SECRET_KEY: 's'.repeat(32) } });
    expect(loaded.kind === 'invalid' ? loaded.errors : []).toEqual([]);
  });
});
