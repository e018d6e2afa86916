/**
 * /v1/auth/sessions: the sessions of the caller. /v1/iam/users/{id}/sessions: the sessions of a user, for
 * administrators.
 */

import { Type } from 'typebox';
import { DONE, shows, TAGGED } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import type { AuthParts } from '../auth/parts.ts';
import { flagOf } from '../schema/keywords.ts';
import { listOf } from '../schema/resource-parts.ts';
import { closed, countedPage } from '../schema/schemas.ts';
import { User } from '../users/entity.ts';
import { getUser } from '../users/find.ts';
import { getSessionOf, listSessionsOf, type SessionParts } from './active.ts';
import { Session } from './entity.ts';
import { endUserSession, endUserSessions } from './of-user.ts';
import { endOwnSession, endOwnSessions, ownSession } from './own.ts';

const pages = Type.Object(countedPage, closed);

const ending = Type.Object({ current: Type.Optional(flagOf('`true`: the current session ends as well.')) }, closed);

const OWN_SESSIONS = '/v1/auth/sessions';
const OWN_SESSION = '/v1/auth/sessions/:id';

export function ownSessionEndpoints(parts: AuthParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: OWN_SESSIONS,
      operationId: 'listSessions',
      summary: 'List your own active sessions, newest first.',
      permission: 'self',
      query: pages,
      answers: shows('One page of sessions.', listOf(Session)),
      run: ({ caller, query }) => listSessionsOf(parts, caller, ownSession(caller).userId, query),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: OWN_SESSIONS,
      operationId: 'endSessions',
      summary: 'End all of your own sessions except the current one. With `current=true`, end the current one as well.',
      permission: 'self',
      query: ending,
      answers: DONE,
      run: ({ caller, query }) => endOwnSessions(parts, caller, { own: query.current === true }),
    }),
    callerEndpoint({
      method: 'GET',
      path: OWN_SESSION,
      target: { type: 'session', param: 'id' },
      operationId: 'getSession',
      summary: 'Get one of your own active sessions.',
      permission: 'self',
      answers: shows('The session.', Session, ['etag']),
      refusals: ['not_found'],
      run: ({ caller, param }) => getSessionOf(parts, caller, ownSession(caller).userId, param('id')),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: OWN_SESSION,
      target: { type: 'session', param: 'id' },
      operationId: 'endSession',
      summary: 'End one of your own sessions. Its tokens are no longer valid.',
      permission: 'self',
      answers: DONE,
      refusals: ['not_found', 'precondition_failed'],
      run: ({ caller, param }) => endOwnSession(parts, caller, param('id')),
    }),
  ];
}

const SESSIONS = '/v1/iam/users/:id/sessions';
const SESSION = '/v1/iam/users/:id/sessions/:session';

export function userSessionEndpoints(parts: SessionParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: SESSIONS,
      target: { type: 'user', param: 'id' },
      operationId: 'listUserSessions',
      summary: 'List the active sessions of a user, newest first.',
      permission: 'admin:users',
      query: pages,
      answers: shows('One page of sessions.', listOf(Session)),
      refusals: ['not_found'],
      run: async ({ caller, param, query }) =>
        listSessionsOf(parts, caller, (await getUser(parts, caller, param('id'))).id, query),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: SESSIONS,
      target: { type: 'user', param: 'id' },
      operationId: 'endUserSessions',
      summary: 'End all sessions of a user.',
      permission: 'admin:users',
      answers: shows('The user.', User, TAGGED),
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      run: ({ caller, param }) => endUserSessions(parts, caller, param('id')),
    }),
    callerEndpoint({
      method: 'GET',
      path: SESSION,
      target: { type: 'user', param: 'id' },
      operationId: 'getUserSession',
      summary: 'Get one active session of a user.',
      permission: 'admin:users',
      answers: shows('The session.', Session, TAGGED),
      refusals: ['not_found'],
      run: async ({ caller, param }) =>
        getSessionOf(parts, caller, (await getUser(parts, caller, param('id'))).id, param('session')),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: SESSION,
      target: { type: 'user', param: 'id' },
      operationId: 'endUserSession',
      summary: 'End one session of a user. Its tokens are no longer valid.',
      permission: 'admin:users',
      answers: DONE,
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      run: ({ caller, param }) => endUserSession(parts, caller, param('id'), param('session')),
    }),
  ];
}
