/** The parts of the overview except the chart, in one request. */

import { useQuery } from '@tanstack/react-query';
import { useTenant } from '../../api/session.ts';

export function useOverview() {
  const { id, client } = useTenant();
  return useQuery({
    queryKey: [id, 'overview'],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/overview', { signal }),
  });
}
