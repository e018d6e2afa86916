/** Who did something, and to what. */

import type { AuditRow } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { audit as text } from '../../text/en/audit.ts';
import { shortened } from '../../ui/mark.tsx';

export function Actor({ actor: { type, id } }: { readonly actor: AuditRow['actor'] }) {
  if (id === null || type === 'system' || type === 'anonymous') return <>{type === 'system' ? text.system : text.anonymous}</>;
  return <Principal type={type} id={id} />;
}

export function Target({ target: { type, id } }: { readonly target: AuditRow['target'] }) {
  if (id === null) return <>{type}</>;
  if (type === 'user' || type === 'api_key') return <Principal type={type} id={id} />;
  return <>{type === null ? shortened(id) : `${type}/${shortened(id)}`}</>;
}
