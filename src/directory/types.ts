/**
 * The differences between the four types of directory, one row each, and the detection of the type from the root entry.
 */

import { Fault } from '../domain/errors.ts';
import type { LdapConnection } from './connection.ts';
import { firstText, type LdapEntry } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import type { IdAttribute } from './ids.ts';
import type { AttributeNames, DirectorySettings, DirectoryType, MemberOf } from './settings.ts';

export interface TypeTraits {
  readonly type: DirectoryType;
  /** The one attribute that identifies people. It never changes, so that a stored id always finds the same entry. */
  readonly id: IdAttribute;
  /** `{0}`: the name without the directory's domain; `{1}`: the typed name. */
  readonly userFilter: string;
  readonly attributes: AttributeNames;
  /**
   * The value for `ldap.member-of: auto`. In OpenLDAP, a schema can make `memberOf` an ordinary attribute, and access
   * rules may allow people to write it.
   */
  readonly memberOf: Exclude<MemberOf, 'auto'>;
  /**
   * The way to find nested groups: Active Directory's matching rule, a walk upwards, or none because `memberOf` has
   * them.
   */
  readonly nesting: 'in-chain' | 'walk' | 'in-member-of';
}

const COMMON: AttributeNames = { username: 'uid', email: 'mail', displayName: 'displayName', groups: 'memberOf' };

export const TYPES: Readonly<Record<DirectoryType, TypeTraits>> = {
  'active-directory': {
    type: 'active-directory',
    id: 'objectGUID',
    userFilter: '(&(objectCategory=person)(objectClass=user)(|(sAMAccountName={0})(userPrincipalName={1})))',
    attributes: { ...COMMON, username: 'sAMAccountName' },
    memberOf: 'trusted',
    nesting: 'in-chain',
  },
  openldap: {
    type: 'openldap',
    id: 'entryUUID',
    userFilter: '(uid={0})',
    attributes: COMMON,
    memberOf: 'searched',
    nesting: 'walk',
  },
  freeipa: {
    type: 'freeipa',
    id: 'ipaUniqueID',
    userFilter: '(&(objectClass=person)(uid={0}))',
    attributes: COMMON,
    memberOf: 'trusted',
    nesting: 'in-member-of',
  },
  '389ds': {
    type: '389ds',
    id: 'nsUniqueId',
    userFilter: '(&(objectClass=person)(uid={0}))',
    attributes: COMMON,
    memberOf: 'trusted',
    nesting: 'in-member-of',
  },
};

/** MS-ADTS, 3.1.1.3.4.3: Active Directory, as a domain controller or as a lightweight service. */
const AD_CAPABILITIES = ['1.2.840.113556.1.4.800', '1.2.840.113556.1.4.1851'];
/** The prefix of the extended operations of FreeIPA's plug-ins for 389 Directory Server. */
const FREEIPA_EXTENSIONS = '2.16.840.1.113730.3.8.10.';

export function attributeNamesOf(traits: TypeTraits, settings: DirectorySettings): AttributeNames {
  return { ...traits.attributes, ...settings.attributes };
}

/** Reports whether the groups that a person's own entry names count. */
export function trustsMemberOf(traits: TypeTraits, { memberOf }: Pick<DirectorySettings, 'memberOf'>): boolean {
  return (memberOf === 'auto' ? traits.memberOf : memberOf) === 'trusted';
}

/**
 * Detects the type once. The root entry belongs to the server, so that no person of the directory can write it.
 * @throws Fault if the root entry is hidden or names no known product. A guess could identify people by an attribute
 *   that they can write
 */
export function typeFinder(settings: DirectorySettings): (connection: LdapConnection) => Promise<TypeTraits> {
  let known = settings.type === 'auto' ? undefined : TYPES[settings.type];
  return async (connection) => {
    known ??= await detect(connection);
    if (known !== undefined) return known;
    throw new Fault(`${connection.url.text}: the root entry does not tell the type of the directory: set ldap.type`);
  };
}

async function detect(connection: LdapConnection): Promise<TypeTraits | undefined> {
  const attributes = ['objectClass', 'supportedCapabilities', 'supportedExtension', 'vendorName', 'vendorVersion'];
  try {
    const [root] = await connection.search({ base: '', scope: 'base', filter: '(objectClass=*)', attributes }, 1);
    return root && typeOfRoot(root);
  } catch (error) {
    if (error instanceof DirectoryFault) return undefined;
    throw error;
  }
}

/** Returns the type that the root entry names; undefined if it names none of the four. */
export function typeOfRoot(root: LdapEntry): TypeTraits | undefined {
  if (root.texts('supportedCapabilities').some((oid) => AD_CAPABILITIES.includes(oid)))
    return TYPES['active-directory'];
  const vendor = `${firstText(root, 'vendorName') ?? ''} ${firstText(root, 'vendorVersion') ?? ''}`;
  if (/389|fedora|red hat|freeipa/i.test(vendor)) {
    const isFreeIpa = root.texts('supportedExtension').some((oid) => oid.startsWith(FREEIPA_EXTENSIONS));
    return isFreeIpa ? TYPES.freeipa : TYPES['389ds'];
  }
  return root.texts('objectClass').some((name) => name.toLowerCase() === 'openldaprootdse')
    ? TYPES.openldap
    : undefined;
}
