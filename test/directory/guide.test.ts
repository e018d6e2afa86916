/** docs/ldap.md: every configuration in it is one that Postern starts with. */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { directorySettings } from '../../src/config/directories.ts';
import { configFile } from '../../src/config/file.ts';
import { loadConfig } from '../../src/config/load.ts';
import { openDirectories } from '../../src/directory/directories.ts';
import type { TestStep } from '../../src/directory/model.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { makeAuthority } from '../support/certificates.ts';

const GUIDE = readFileSync(new URL('../../docs/ldap.md', import.meta.url), 'utf8');
const STEPS: readonly TestStep['step'][] = [
  'connect',
  'tls',
  'service_bind',
  'find_user',
  'user_bind',
  'attributes',
  'groups',
  'roles',
  'tenant',
];

/** A configuration of directories in the guide. */
interface Block {
  readonly heading: string;
  readonly yaml: string;
}

function blocks(): Block[] {
  const parts = GUIDE.split(/^(#{2,3} .*)$/m);
  const all = parts.flatMap((part, i) => {
    const heading = parts[i - 1]?.replace(/^#+ /, '') ?? '';
    return [...part.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml = '']) => ({ heading, yaml }));
  });
  return all.filter(({ yaml }) => /^ldap:/m.test(yaml));
}

describe('the guide to directories', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postern-guide-'));
    await writeFile(join(folder, 'ca.pem'), makeAuthority().certPem);
    await writeFile(join(folder, 'password'), 'the password of a service account\n');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const settingsOf = async ({ yaml }: Block): Promise<readonly DirectorySettings[]> => {
    const file = join(folder, 'postern.yaml');
    // Only where the files are is another here.
    const local = yaml
      .replace(/(ca-file: )\S+/g, `$1${folder}/ca.pem`)
      .replace(/(password-file: )\S+/g, `$1${folder}/password`);
    await writeFile(file, local);
    const loaded = loadConfig({ file: configFile(file), env: {} });
    if (loaded.kind === 'invalid') throw new Error(JSON.stringify(loaded.errors));
    return directorySettings(loaded.config, loaded.secrets);
  };

  test('has a configuration for each type, for Entra Domain Services, and for several directories', () => {
    expect(blocks().map(({ heading }) => heading)).toEqual([
      'Microsoft Active Directory',
      'Microsoft Active Directory',
      'OpenLDAP',
      'FreeIPA',
      '389 Directory Server',
      'Entra Domain Services',
      'Tenants',
    ]);
  });

  test.each(blocks())('$heading: the configuration is accepted, encrypted, and gives roles', async (block) => {
    const settings = await settingsOf(block);
    expect(settings.length).toBeGreaterThan(0);
    for (const one of settings) {
      expect(one.urls.every(({ secure }) => secure || one.startTls)).toBe(true);
      expect(one.groupRoles.size).toBeGreaterThan(0);
    }
    const warnings = openDirectories(settings).problems;
    expect(warnings).toHaveLength(settings.filter(({ serviceAccount }) => serviceAccount === undefined).length);
  });

  test('lists every step of a test, in order', () => {
    const table = GUIDE.slice(GUIDE.indexOf('| step | when it fails |'));
    expect([...table.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, step]) => step)).toEqual(STEPS);
  });
});
