/**
 * The name of a user or a key, found once for each id. Until it is found, and where the caller may not know it, the id
 * stands.
 */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ApiKey } from '../../../client/index.ts';
import { shortened } from '../ui/mark.tsx';
import { useSeen } from '../ui/use-seen.ts';
import { useMe, useTenant } from './session.ts';

const FRESH_MS = 300_000;

export type PrincipalType = 'user' | 'api_key';

/** An email address, a prefix or the name of a key in a link to Explain is no id. */
function isPrincipalId(text: string): boolean {
  return /^(?:usr|key)_/.test(text);
}

/** The text for a principal whose name is not known. Only an id is shortened. */
export function shownPrincipal(text: string): string {
  return isPrincipalId(text) ? shortened(text) : text;
}

/** @param isWanted false: it is not asked for yet */
export function useName(type: PrincipalType, id: string, isWanted = true): string | undefined {
  const { id: tenant, client } = useTenant();
  const me = useMe();
  const { data } = useQuery({
    queryKey: [tenant, 'name', id],
    queryFn: async ({ signal }) =>
      type === 'user'
        ? (await client.users.get(id, { signal })).name
        : nameOf(await client.apiKeys.get(id, { signal })),
    staleTime: FRESH_MS,
    retry: false,
    // A platform administrator that acts in another tenant is not found there.
    enabled: isWanted && id !== me.id && isPrincipalId(id),
  });
  if (id === me.id) return me.name;
  return data === '' ? undefined : data;
}

/** The display name of a key. */
export function nameOf({ name, description }: Pick<ApiKey, 'name' | 'description'>): string {
  return name ?? description;
}

/** The part of a key that lists show: the beginning and the end of its secret, or the tokens that prove it. */
export function shownKey({
  prefix,
  last_four: lastFour,
  proof,
}: Pick<ApiKey, 'prefix' | 'last_four' | 'proof'>): string {
  return proof === null ? `${prefix}…${lastFour}` : `${proof.issuer}: ${proof.subject}`;
}

interface PrincipalProps {
  readonly type: PrincipalType;
  readonly id: string;
  /** The name that the list has; null: the caller knows none. Absent: the list has no names. */
  readonly name?: string | null | undefined;
}

/** A link to the page of the principal. Without a name from its list, it requests the name when it is in view. */
export function Principal({ type, id, name: listed }: PrincipalProps) {
  const { place, isSeen } = useSeen<HTMLAnchorElement>();
  const found = useName(type, id, isSeen && listed === undefined);
  const name = (listed === undefined || listed === null || listed === '' ? found : listed) ?? shownPrincipal(id);
  if (!isPrincipalId(id)) return name;
  return type === 'user' ? (
    <Link ref={place} to="/users/$id" params={{ id }}>
      {name}
    </Link>
  ) : (
    <Link ref={place} to="/keys" search={{ open: id }}>
      {name}
    </Link>
  );
}
