/** The last changes and their actors. It has no logins; the audit log has them. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { AuditRow } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { overview as text } from '../../text/en/overview.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import { Actor, Target } from '../audit/actor.tsx';
import styles from './overview.module.css';
import { Section } from './section.tsx';

const LOOKED_AT = 50;
const SHOWN = 5;

export function Changes() {
  return (
    <Section
      needs="audit:read"
      head={<SectionHead title={text.changes} link={<Link to="/audit">{text.toAudit}</Link>} />}
    >
      <Rows />
    </Section>
  );
}

function Rows() {
  const { id, client } = useTenant();
  const audit = useQuery({
    queryKey: [id, 'audit', 'last changes'],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/audit', { query: { result: 'success', limit: LOOKED_AT }, signal }),
  });
  if (audit.isError) return <Problem error={audit.error} onRetry={() => void audit.refetch()} />;
  if (audit.data === undefined) return <div className={styles.wait} aria-busy="true" />;
  const rows = audit.data.data.filter(isChange).slice(0, SHOWN);
  if (rows.length === 0) return <p className={styles.soft}>{text.changesNone}</p>;
  return (
    <ul className={styles.rows}>
      {rows.map((row) => (
        <li key={row.id}>
          <span className={styles.when}>
            <Link to="/audit" search={{ open: row.id }} className={styles.dim}>
              <Ago time={row.time} />
            </Link>
          </span>
          <span className={styles.what}>
            <b>
              <Actor actor={row.actor} />
            </b>{' '}
            {verbOf(row)} <Thing row={row} />
          </span>
        </li>
      ))}
    </ul>
  );
}

const THINGS: ReadonlySet<string> = new Set(Object.keys(text.things));

function isChange({ action, target }: AuditRow): boolean {
  return !action.startsWith('auth.') && target.id !== null && target.type !== null && THINGS.has(target.type);
}

function verbOf({ action }: AuditRow): string {
  const verb = action.split('.')[1] ?? action;
  return text.did[verb] ?? verb.replaceAll('_', ' ');
}

function Thing({ row: { target } }: { readonly row: AuditRow }) {
  const { type, id } = target;
  if (type === null || id === null) return null;
  const name = text.things[type] ?? type;
  switch (type) {
    case 'role':
      return (
        <>
          {name}{' '}
          <Link to="/roles/$name" params={{ name: id }}>
            {id}
          </Link>
        </>
      );
    case 'policy':
      return (
        <>
          {name}{' '}
          <Link to="/policies/$name" params={{ name: id }}>
            {id}
          </Link>
        </>
      );
    case 'user':
    case 'api_key':
      return (
        <>
          {name} <Target target={target} />
        </>
      );
    default:
      return (
        <>
          {name} {id}
        </>
      );
  }
}
