/** The form of the address of a webhook. The host's addresses are checked when something is sent. */

import type { FieldError } from '../../domain/problem-details.ts';
import { writtenAddressProblem } from '../../outbound/written-address.ts';

/** The operator's setting for hosts with private addresses. */
export const ALLOWED_HOSTS_SETTING = 'webhooks.allowed-hosts';

/** Returns an error for a text to which the server would not send anything. */
export function urlErrors(url: string, allowedHosts: readonly string[], path = '/url'): readonly FieldError[] {
  const message = writtenAddressProblem(url, {
    hosts: allowedHosts,
    setting: ALLOWED_HOSTS_SETTING,
    refusesPrivate: true,
  });
  return message === undefined ? [] : [{ path, message }];
}
