/** A few keys or users: a chip for each, and a search that adds one. */

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { nameOf, shownKey, useName } from '../../api/principal.tsx';
import { whileSearching } from '../../api/queries.ts';
import { keySearch } from '../../api/search-text.ts';
import { useTenant } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { common } from '../../text/en/common.ts';
import { Chip } from '../../ui/chip.tsx';
import { ChooseFrom, type ChooseItem } from '../../ui/choose-from.tsx';
import fieldStyles from '../../ui/field.module.css';
import { Filter } from '../../ui/filter.tsx';
import { shortened } from '../../ui/mark.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';
import styles from './budget.module.css';

type Kind = 'keys' | 'users';

const FOUND = 20;
const ADD = { keys: text.addKey, users: text.addUser } as const;
const FIND = { keys: text.findKey, users: text.findUser } as const;
const FIND_BY = { keys: text.findKeyBy, users: text.findUserBy } as const;
const NONE = { keys: text.noKey, users: text.noUser } as const;

interface SubjectChipsProps {
  readonly kind: Kind;
  readonly ids: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
  readonly error?: string | undefined;
}

export function SubjectChips({ kind, ids, onChange, error }: SubjectChipsProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are
    <div
      role="group"
      aria-label={text.targets[kind]}
      className={fieldStyles.field}
      data-fault={error === undefined ? undefined : ''}
    >
      <div className={styles.chips}>
        {ids.map((id) => (
          <SubjectChip key={id} kind={kind} id={id} onRemove={() => onChange(ids.filter((other) => other !== id))} />
        ))}
        <Filter label={ADD[kind]} title={FIND[kind]}>
          {(close) => (
            <Chooser
              kind={kind}
              onChoose={(id) => {
                close();
                if (!ids.includes(id)) onChange([...ids, id]);
              }}
            />
          )}
        </Filter>
      </div>
      {error === undefined ? null : (
        <span className={fieldStyles.error} role="status">
          {error}
        </span>
      )}
    </div>
  );
}

interface SubjectChipProps {
  readonly kind: Kind;
  readonly id: string;
  readonly onRemove: () => void;
}

function SubjectChip({ kind, id, onRemove }: SubjectChipProps) {
  const name = useName(kind === 'users' ? 'user' : 'api_key', id) ?? shortened(id);
  return (
    <Chip label={common.removeOf(name)} onRemove={onRemove}>
      {name}
    </Chip>
  );
}

function Chooser({ kind, onChoose }: { readonly kind: Kind; readonly onChoose: (id: string) => void }) {
  const { id: tenant, client } = useTenant();
  const [typed, setTyped] = useState('');
  const q = useSearchText(typed);
  const queryKey = [tenant, kind, 'of budgets', q];
  const found = useQuery({
    queryKey,
    placeholderData: whileSearching(queryKey),
    queryFn: async ({ signal }): Promise<readonly ChooseItem[]> => {
      if (kind === 'users') {
        const query = { limit: FOUND, ...(q === '' ? {} : { q }) };
        const { data } = await client.request('GET', '/v1/iam/users', { query, signal });
        return data.map(({ id, name, email }) => ({ id, name, small: email ?? undefined }));
      }
      const { data } = await client.request('GET', '/v1/iam/api-keys', {
        query: { limit: FOUND, ...keySearch(q) },
        signal,
      });
      return data.map((key) => ({ id: key.id, name: nameOf(key), small: shownKey(key) }));
    },
  });
  if (found.isError) return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  return (
    <ChooseFrom
      label={FIND[kind]}
      placeholder={FIND_BY[kind]}
      typed={typed}
      onType={setTyped}
      items={found.data ?? []}
      onChoose={onChoose}
      empty={found.isFetching ? common.loading : NONE[kind]}
    />
  );
}
