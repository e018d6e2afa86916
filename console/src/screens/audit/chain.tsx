/** How far the log is sealed. It is one chain for all tenants, so only platform administrators see it. */

import { useQuery } from '@tanstack/react-query';
import { client } from '../../api/client.ts';
import { useMe } from '../../api/session.ts';
import { audit as text } from '../../text/en/audit.ts';
import { Id } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { sentenceOf } from '../../ui/problem.tsx';
import { Ago } from '../../ui/time.tsx';
import styles from './audit.module.css';

export function Chain() {
  const { platform_admin: isPlatformAdmin } = useMe();
  const chain = useQuery({
    queryKey: ['audit chain'],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/audit/chain', { signal }),
    enabled: isPlatformAdmin,
  });
  if (!isPlatformAdmin) return text.chainOfPlatform;
  if (chain.isError) return <span role="status">{sentenceOf(chain.error)}</span>;
  if (chain.data === undefined) return <span aria-busy="true">{text.chainLoading}</span>;
  const { rows, seals, unsealed, newest_seal: newest } = chain.data;
  if (newest === null) return text.noSeal(count(unsealed));
  return (
    <>
      {text.sealed(count(rows), count(seals))} <Ago time={newest.time} />.{' '}
      {unsealed === 0 ? text.allSealed : text.unsealed(count(unsealed), unsealed)} {text.notVerified}{' '}
      <span className={styles.hash}>
        {text.newestHash} <Id value={newest.hash} />
      </span>
    </>
  );
}
