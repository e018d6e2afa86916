/** Who did something, and to what. */

import { Link } from '@tanstack/react-router';
import type { AuditRow } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { audit as text } from '../../text/en/audit.ts';
import { shortened } from '../../ui/mark.tsx';

export function Actor({ actor: { type, id, name } }: { readonly actor: AuditRow['actor'] }) {
  if (id === null || type === 'system' || type === 'anonymous')
    return <>{type === 'system' ? text.system : text.anonymous}</>;
  return <Principal type={type} id={id} name={name} />;
}

/** A link to the resource as it is now, if it has a screen. */
export function Target({ target: { type, id, name } }: { readonly target: AuditRow['target'] }) {
  if (id === null) return <>{type}</>;
  switch (type) {
    case 'user':
    case 'api_key':
      return <Principal type={type} id={id} name={name} />;
    case 'role':
      return (
        <Link to="/roles/$name" params={{ name: id }}>
          {`${type}/${id}`}
        </Link>
      );
    case 'policy':
      return (
        <Link to="/policies/$name" params={{ name: id }}>
          {`${type}/${id}`}
        </Link>
      );
    case 'issuer':
      return (
        <Link to="/issuers/$id" params={{ id }}>
          {`${type}/${name ?? shortened(id)}`}
        </Link>
      );
    case 'tenant':
      return (
        <Link to="/tenants" search={{ open: id }}>
          {`${type}/${id}`}
        </Link>
      );
    default:
      return <>{type === null ? shortened(id) : `${type}/${shortened(id)}`}</>;
  }
}
