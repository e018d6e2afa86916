/** /v1/iam/users/{id}/sessions */

import { Type } from 'typebox';
import { DONE, shows, TAGGED } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import { listOf } from '../schema/resource-parts.ts';
import { Session } from '../schema/resources.ts';
import { closed, countedPage } from '../schema/schemas.ts';
import { User } from '../users/entity.ts';
import { endUserSession, endUserSessions, getUserSession, listUserSessions, type UserSessionParts } from './of-user.ts';

const pages = Type.Object(countedPage, closed);

const SESSIONS = '/v1/iam/users/:id/sessions';
const SESSION = '/v1/iam/users/:id/sessions/:session';

export function userSessionEndpoints(parts: UserSessionParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: SESSIONS,
      target: { type: 'user', param: 'id' },
      operationId: 'listUserSessions',
      summary: 'List the active sessions of a user, newest first.',
      permission: 'admin:users',
      body: NOTHING,
      query: pages,
      answers: shows('One page of sessions.', listOf(Session)),
      refusals: ['not_found'],
      handler: async ({ caller, param, query }) => ({
        status: 200,
        body: await listUserSessions(parts, caller, param('id'), query),
      }),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: SESSIONS,
      target: { type: 'user', param: 'id' },
      operationId: 'endUserSessions',
      summary: 'End all sessions of a user.',
      permission: 'admin:users',
      body: NOTHING,
      query: NOTHING,
      answers: shows('The user.', User, TAGGED),
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      handler: async ({ caller, param }) => ({ status: 200, body: await endUserSessions(parts, caller, param('id')) }),
    }),
    callerEndpoint({
      method: 'GET',
      path: SESSION,
      target: { type: 'user', param: 'id' },
      operationId: 'getUserSession',
      summary: 'Get one active session of a user.',
      permission: 'admin:users',
      body: NOTHING,
      query: NOTHING,
      answers: shows('The session.', Session, TAGGED),
      refusals: ['not_found'],
      handler: async ({ caller, param }) => ({
        status: 200,
        body: await getUserSession(parts, caller, param('id'), param('session')),
      }),
    }),
    callerEndpoint({
      method: 'DELETE',
      path: SESSION,
      target: { type: 'user', param: 'id' },
      operationId: 'endUserSession',
      summary: 'End one session of a user. Its tokens are no longer valid.',
      permission: 'admin:users',
      body: NOTHING,
      query: NOTHING,
      answers: DONE,
      refusals: ['not_found', 'escalation', 'precondition_failed'],
      handler: async ({ caller, param }) => {
        await endUserSession(parts, caller, param('id'), param('session'));
        return { status: 204 };
      },
    }),
  ];
}
