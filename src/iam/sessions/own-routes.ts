/** /v1/auth/sessions: one's own sessions, with an access token. */

import { Type } from 'typebox';
import { DONE, shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import type { AuthParts } from '../auth/parts.ts';
import { listOf } from '../schema/resource-parts.ts';
import { Session } from '../schema/resources.ts';
import { closed, countedPage } from '../schema/schemas.ts';
import { endOwnSession, endOwnSessions, getSession, listSessions } from './own.ts';

const pages = Type.Object(countedPage, closed);

const ending = Type.Object(
  { current: Type.Optional(Type.Boolean({ description: '`true`: the current session ends as well.' })) },
  closed,
);

const SESSIONS = '/v1/auth/sessions';
const SESSION = '/v1/auth/sessions/:id';

export function sessionEndpoints(parts: AuthParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: SESSIONS,
      operationId: 'listSessions',
      summary: 'List your own active sessions, newest first.',
      permission: 'any',
      body: NOTHING,
      query: pages,
      answers: shows('One page of sessions.', listOf(Session)),
      refusals: ['insufficient_permission'],
      handler: async ({ caller, query }) => ({ status: 200, body: await listSessions(parts, caller, query) }),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: SESSIONS,
      operationId: 'endSessions',
      summary: 'End all of your own sessions except the current one. With `current=true`, end the current one as well.',
      permission: 'any',
      body: NOTHING,
      query: ending,
      answers: DONE,
      refusals: ['insufficient_permission'],
      handler: async ({ caller, query }) => {
        await endOwnSessions(parts, caller, { own: query.current === true });
        return { status: 204 };
      },
    }),
    callerEndpoint({
      method: 'GET',
      path: SESSION,
      target: { type: 'session', param: 'id' },
      operationId: 'getSession',
      summary: 'Get one of your own active sessions.',
      permission: 'any',
      body: NOTHING,
      query: NOTHING,
      answers: shows('The session.', Session, ['etag']),
      refusals: ['insufficient_permission', 'not_found'],
      handler: async ({ caller, param }) => ({ status: 200, body: await getSession(parts, caller, param('id')) }),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: SESSION,
      target: { type: 'session', param: 'id' },
      operationId: 'endSession',
      summary: 'End one of your own sessions. Its tokens are no longer valid.',
      permission: 'any',
      body: NOTHING,
      query: NOTHING,
      answers: DONE,
      refusals: ['insufficient_permission', 'not_found', 'precondition_failed'],
      handler: async ({ caller, param }) => {
        await endOwnSession(parts, caller, param('id'));
        return { status: 204 };
      },
    }),
  ];
}
