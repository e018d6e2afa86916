/** Before and after, by member. */

import { useState } from 'react';
import { audit as text } from '../text/en/audit.ts';
import { Button } from './button.tsx';
import styles from './diff.module.css';
import { type Difference, differences } from './diff.ts';
import { Small } from './mark.tsx';

export function Diff({ before, after }: { readonly before: unknown; readonly after: unknown }) {
  const [showsAll, setShowsAll] = useState(false);
  const all = before === null && after === null ? [] : differences(before ?? undefined, after ?? undefined);
  const shown = showsAll ? all : all.filter(({ isChanged }) => isChanged);
  const hidden = all.length - shown.length;
  if (all.length === 0) return <Small>{text.noValues}</Small>;
  return (
    <div>
      <table className={styles.diff}>
        <thead>
          <tr>
            <th>{text.member}</th>
            <th>{text.before}</th>
            <th>{text.after}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((one) => (
            <tr key={one.path}>
              <td>{one.path}</td>
              <td>{one.before === undefined ? null : <Before {...one} />}</td>
              <td>{one.after === undefined ? null : <After {...one} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {hidden > 0 ? (
        <Small>
          {text.unchanged(hidden)}{' '}
          <Button tone="quiet" small onPress={() => setShowsAll(true)}>
            {text.showUnchanged}
          </Button>
        </Small>
      ) : null}
    </div>
  );
}

function Before({ before, isChanged }: Difference) {
  return isChanged ? <del>{JSON.stringify(before)}</del> : JSON.stringify(before);
}

function After({ after, isChanged }: Difference) {
  return isChanged ? <ins>{JSON.stringify(after)}</ins> : JSON.stringify(after);
}
