/**
 * Attack 14: a `tracestate` of 32 KB through an Envoy that traces, which copies it into checks on the connection of
 * all.
 */

import { ATTACKER, type Attack, hammer, makeAttacker } from '../attack.ts';

/** Envoy admits 32 KiB of headers. A check has more of its own than such a request. */
const TRACESTATE = `a=${'v'.repeat(32_100)}`;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const PER_SECOND = 260;
const CONNECTIONS = 4;

export const traceHeaders: Attack = {
  number: 14,
  title: 'a large tracestate',
  traces: true,
  async prepare(stand) {
    await makeAttacker(stand);
    const { key } = await stand.administrator.makeKey(ATTACKER, { scopes: ['models:read'] });
    return { credentials: [key] };
  },
  run({ edge }, { credentials = [] }, untilMs) {
    const headers = { traceparent: TRACEPARENT, tracestate: TRACESTATE };
    const request = { method: 'GET', path: '/v1/models', authorization: `Bearer ${credentials[0] ?? ''}`, headers };
    return hammer(edge, CONNECTIONS, request, untilMs, PER_SECOND);
  },
};
