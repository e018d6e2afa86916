/** What differs between the four types of directory, one row each, and how a server is told apart by its root entry. */

import type { Connection } from './connection.ts';
import { firstText } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import type { AttributeNames, DirectorySettings, DirectoryType } from './settings.ts';

export interface TypeTraits {
  readonly type: DirectoryType;
  /** `{0}`: the name without the directory's domain; `{1}`: as it was typed. */
  readonly userFilter: string;
  readonly attributes: AttributeNames;
  /**
   * How groups in groups are found: by Active Directory's matching rule, by walking up, or not at all because `memberOf` holds them
   * already.
   */
  readonly nesting: 'in-chain' | 'walk' | 'in-member-of';
}

const COMMON: AttributeNames = { username: 'uid', email: 'mail', displayName: 'displayName', groups: 'memberOf' };

export const TYPES: Readonly<Record<DirectoryType, TypeTraits>> = {
  'active-directory': {
    type: 'active-directory',
    userFilter: '(&(objectCategory=person)(objectClass=user)(|(sAMAccountName={0})(userPrincipalName={1})))',
    attributes: { ...COMMON, username: 'sAMAccountName' },
    nesting: 'in-chain',
  },
  openldap: { type: 'openldap', userFilter: '(uid={0})', attributes: COMMON, nesting: 'walk' },
  freeipa: { type: 'freeipa', userFilter: '(&(objectClass=person)(uid={0}))', attributes: COMMON, nesting: 'in-member-of' },
  '389ds': { type: '389ds', userFilter: '(&(objectClass=person)(uid={0}))', attributes: COMMON, nesting: 'in-member-of' },
};

/** MS-ADTS, 3.1.1.3.4.3: Active Directory, as a domain controller or as a lightweight service. */
const AD_CAPABILITIES = ['1.2.840.113556.1.4.800', '1.2.840.113556.1.4.1851'];

export function attributesOf(traits: TypeTraits, settings: DirectorySettings): AttributeNames {
  return { ...traits.attributes, ...settings.attributes };
}

/** Finds the type once and remembers it. A server that hides its root entry is asked again, and is treated like OpenLDAP meanwhile. */
export function typeFinder(settings: DirectorySettings): (connection: Connection) => Promise<TypeTraits> {
  let known = settings.type === 'auto' ? undefined : TYPES[settings.type];
  return async (connection) => {
    known ??= await detect(connection);
    return known ?? TYPES.openldap;
  };
}

async function detect(connection: Connection): Promise<TypeTraits | undefined> {
  try {
    const [root] = await connection.search(
      {
        base: '',
        scope: 'base',
        filter: '(objectClass=*)',
        attributes: ['supportedCapabilities', 'vendorName', 'vendorVersion'],
      },
      1,
    );
    if (root === undefined) return undefined;
    if (root.texts('supportedCapabilities').some((oid) => AD_CAPABILITIES.includes(oid))) return TYPES['active-directory'];
    const vendor = `${firstText(root, 'vendorName') ?? ''} ${firstText(root, 'vendorVersion') ?? ''}`;
    return /389|fedora|red hat|freeipa/i.test(vendor) ? TYPES['389ds'] : TYPES.openldap;
  } catch (error) {
    if (error instanceof DirectoryFault) return undefined;
    throw error;
  }
}
