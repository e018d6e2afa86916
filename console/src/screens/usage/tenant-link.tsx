/** A tenant by its name, with the way to its own usage. */

import { Link } from '@tanstack/react-router';
import { TwoLines } from '../../ui/list.tsx';

export function TenantLink({ id, name }: { readonly id: string; readonly name: string }) {
  const link = (
    <Link to="/usage" search={(old) => ({ ...old, tenant: id, by: undefined, sort: undefined })}>
      {name}
    </Link>
  );
  return <TwoLines name={link} second={name === id ? undefined : <code>{id}</code>} />;
}
