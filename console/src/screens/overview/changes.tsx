/** The last changes and their actors. It has no logins; the audit log has them. */

import { Link } from '@tanstack/react-router';
import type { AuditRow } from '../../../../client/index.ts';
import { overview as text } from '../../text/en/overview.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import { Actor, Target } from '../audit/actor.tsx';
import styles from './overview.module.css';
import { useOverview } from './queries.ts';
import { Section } from './section.tsx';

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
  const overview = useOverview();
  const rows = overview.data?.changes;
  if (overview.isError) return <Problem error={overview.error} onRetry={() => void overview.refetch()} />;
  if (rows === undefined) return <div className={styles.wait} aria-busy="true" />;
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
