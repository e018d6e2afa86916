/** The configured directories, and whether each answers. */

import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { client } from '../../api/client.ts';
import { directory as text } from '../../text/en/directory.ts';
import { Entry } from '../../ui/courses.tsx';
import { State } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import styles from './directory.module.css';

const TONES = { up: 'good', down: 'deny', unknown: 'off' } as const;

interface Directory {
  readonly name: string;
  readonly status: keyof typeof TONES;
}

type Read = UseQueryResult<readonly Directory[]>;

export function useDirectories(): Read {
  return useQuery({
    queryKey: ['directories'],
    queryFn: async ({ signal }): Promise<readonly Directory[]> =>
      (await client.request('GET', '/v1/iam/directory', { signal })).directories,
  });
}

export function Configured({ read }: { readonly read: Read }) {
  return (
    <section className={styles.configured} aria-busy={read.isPending}>
      <SectionHead title={text.configured} />
      {read.isError ? <Problem error={read.error} onRetry={() => void read.refetch()} /> : null}
      <ul>
        {(read.data ?? []).map(({ name, status }) => (
          <Entry
            key={name}
            name={<code>{name}</code>}
            second={text.statusSays[status]}
            end={<State tone={TONES[status]}>{text.statuses[status]}</State>}
          />
        ))}
      </ul>
    </section>
  );
}
