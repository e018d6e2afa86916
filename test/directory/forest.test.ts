/**
 * Binds by a pattern in a forest, where a domain controller authenticates users of other domains too. Postern must log
 * in the account that the controller authenticated. The domain controller is a scripted one; table.test.ts has the
 * answers of Samba.
 */

import { afterEach, describe, expect, test } from 'vitest';
import { openDirectories } from '../../src/directory/directories.ts';
import type { DirectorySettings } from '../../src/directory/settings.ts';
import { Fault } from '../../src/domain/errors.ts';
import { type Peer, type PeerAccount, type PeerOptions, startPeer } from './servers/peer.ts';
import { settingsWith, urlOf } from './unit/fake-settings.ts';

const CORP_PASSWORD = 'of alice in CORP';
const OTHER_PASSWORD = 'of alice in OTHER';
const CORP_ID = '11111111-1111-1111-1111-111111111111';
const OTHER_ID = '22222222-2222-2222-2222-222222222222';

/** A GUID all of whose bytes are the same reads the same in every order. */
function account(
  domain: string,
  suffix: string,
  password: string,
  byte: number,
  more: Partial<PeerAccount> = {},
): PeerAccount {
  const dn = `CN=Alice,OU=People,${suffix}`;
  const attributes = {
    objectclass: 'user',
    samaccountname: 'alice',
    objectguid: Buffer.alloc(16, byte),
    'msds-principalname': `${domain}\\alice`,
  };
  return { dn, password, attributes, ...more };
}

const CORP = account('CORP', 'DC=corp,DC=example', CORP_PASSWORD, 0x11);
/** An account of a child domain, with the UPN suffix of the whole forest. */
const OTHER = account('OTHER', 'DC=other,DC=corp,DC=example', OTHER_PASSWORD, 0x22);
const withUpn = (one: PeerAccount): PeerAccount => ({
  ...one,
  attributes: { ...one.attributes, userprincipalname: 'alice@corp.example' },
});
const SERVICE: PeerAccount = { dn: 'cn=service,dc=x', password: 'the service account’s', attributes: {} };

const saying: PeerOptions['whoAmI'] = (bound) => (bound ? `u:${String(bound.attributes['msds-principalname'])}` : '');
const silent: PeerOptions['whoAmI'] = () => undefined;

describe('a domain controller of a forest', () => {
  const peers: Peer[] = [];
  afterEach(async () => {
    for (const peer of peers.splice(0)) await peer.close();
  });

  async function forest(options: PeerOptions, changes: Partial<DirectorySettings> = {}) {
    const peer = await startPeer({ ...options, accounts: [...options.accounts, SERVICE] });
    peers.push(peer);
    const settings = settingsWith({
      type: 'active-directory',
      urls: [urlOf(`ldap://127.0.0.1:${peer.port}`)],
      baseDn: 'DC=corp,DC=example',
      userSearchBase: 'OU=People,DC=corp,DC=example',
      userDnPattern: '{0}@corp.example',
      domains: ['corp', 'corp.example'],
      timeoutMs: 30_000,
      ...changes,
    });
    return { peer, directories: openDirectories([settings]) };
  }
  const accounts = [CORP, withUpn(OTHER)];

  test('that reports a bound account of another domain: the login is rejected', async () => {
    const { directories } = await forest({ accounts, whoAmI: saying });
    expect(await directories.authenticate('alice', OTHER_PASSWORD)).toEqual({
      kind: 'refused',
      reason: 'other_domain',
      directory: 'ldap',
      detail: 'the directory authenticated OTHER\\alice, whose domain is not in ldap.domain',
    });
    expect((await directories.test({ username: 'alice', password: OTHER_PASSWORD })).at(-1)).toMatchObject({
      step: 'find_user',
      ok: false,
      detail: expect.stringContaining('OTHER\\alice'),
      advice: expect.stringContaining('ldap.domain'),
    });
  });

  test('that reports a bound account of a configured domain: the login is rejected unless the search finds that account', async () => {
    const domains = ['corp', 'corp.example', 'other'];
    const narrow = await forest({ accounts, whoAmI: saying }, { domains });
    expect(await narrow.directories.authenticate('alice', OTHER_PASSWORD)).toMatchObject({
      reason: 'other_domain',
      detail: `the directory authenticated OTHER\\alice, and not ${CORP.dn}`,
    });
    const wide = await forest({ accounts, whoAmI: saying }, { domains, userSearchBase: undefined });
    expect(await wide.directories.authenticate('alice', OTHER_PASSWORD)).toMatchObject({
      kind: 'proved',
      person: { stableId: `objectguid:${OTHER_ID}` },
    });
  });

  test.each([
    ['its own account', { accounts: [withUpn(CORP), OTHER], whoAmI: saying }, {}],
    ['its own account in another case', { accounts: [withUpn(CORP), OTHER], whoAmI: () => 'u:corp\\ALICE' }, {}],
    [
      'its own account, searched with the other',
      { accounts: [OTHER, withUpn(CORP)], whoAmI: saying },
      { userSearchBase: undefined },
    ],
    ['its own account by CORP\\{0}', { accounts, whoAmI: saying }, { userDnPattern: 'CORP\\{0}', domains: [] }],
    ['nothing, where the password is that of the entry', { accounts: [withUpn(CORP)], whoAmI: silent }, {}],
  ] satisfies readonly (readonly [string, PeerOptions, Partial<DirectorySettings>])[])(
    'that says %s: the person is logged in',
    async (_, options, changes) => {
      const { directories } = await forest(options, changes);
      expect(await directories.authenticate('alice', CORP_PASSWORD)).toMatchObject({
        kind: 'proved',
        person: { stableId: `objectguid:${CORP_ID}`, dn: CORP.dn },
      });
    },
  );

  test('that does not name the bound account: the login is rejected unless the entry found has the same password', async () => {
    for (const whoAmI of [silent, () => 'u:alice', () => '']) {
      const { directories, peer } = await forest({ accounts, whoAmI });
      expect(await directories.authenticate('alice', OTHER_PASSWORD)).toMatchObject({
        reason: 'other_domain',
        detail: `the directory authenticates alice@corp.example, and not ${CORP.dn} with the same password`,
      });
      expect(peer.binds).toContain(CORP.dn);
    }
  });

  test('that requires a new password: the answer names only the account that has the typed password', async () => {
    const mustChange = { refusal: '773' };
    const other = await forest({ accounts: [CORP, { ...withUpn(OTHER), ...mustChange }], whoAmI: saying });
    expect(await other.directories.authenticate('alice', OTHER_PASSWORD)).toMatchObject({ reason: 'other_domain' });
    const own = await forest({ accounts: [{ ...withUpn(CORP), ...mustChange }, OTHER], whoAmI: saying });
    expect(await own.directories.authenticate('alice', CORP_PASSWORD)).toMatchObject({
      kind: 'password_expired',
      person: { stableId: `objectguid:${CORP_ID}` },
    });
  });

  test('that shows no msDS-PrincipalName to compare with: the login is a fault', async () => {
    const { 'msds-principalname': _, ...attributes } = CORP.attributes;
    const nameless = withUpn({ ...CORP, attributes });
    const { directories } = await forest({ accounts: [nameless], whoAmI: () => 'u:CORP\\alice' });
    const login = directories.authenticate('alice', CORP_PASSWORD);
    await expect(login).rejects.toBeInstanceOf(Fault);
    await expect(login).rejects.toThrow(/shows no msDS-PrincipalName/);
  });

  test('without configured domains: a warning says what is refused', async () => {
    const { directories } = await forest({ accounts, whoAmI: saying }, { domains: [] });
    expect(directories.problems).toEqual([expect.stringContaining('Set ldap.domain to both names of the domain')]);
    expect(await directories.authenticate('alice', OTHER_PASSWORD)).toMatchObject({ reason: 'other_domain' });
  });
});
