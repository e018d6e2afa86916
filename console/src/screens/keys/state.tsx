import type { ApiKey } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { keys as text } from '../../text/en/keys.ts';
import { State } from '../../ui/mark.tsx';
import { useNow } from '../../ui/time.tsx';

/** How long before its end a key needs care. */
export const SOON_MS = 14 * 86_400_000;
const TONES = { active: 'good', disabled: 'off', expired: 'off', revoked: 'deny' } as const;

export function KeyState({ apiKey }: { readonly apiKey: Pick<ApiKey, 'status' | 'expires_at'> }) {
  const now = useNow();
  const { status, expires_at: expiresAt } = apiKey;
  const leftMs = status !== 'active' || expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - now;
  if (leftMs <= 0) return <State tone={TONES.expired}>{text.states.expired}</State>;
  if (leftMs < SOON_MS) return <State tone="care">{text.filters.expiring}</State>;
  return <State tone={TONES[status]}>{text.states[status]}</State>;
}

/** The owner of a key in a list. The list has its name, if the caller may see users. */
export function KeyOwner({ apiKey: { user_id: id, owner } }: { readonly apiKey: Pick<ApiKey, 'user_id' | 'owner'> }) {
  return id === null ? text.tenantItself : <Principal type="user" id={id} name={owner?.name ?? null} />;
}
