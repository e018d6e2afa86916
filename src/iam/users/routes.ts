/** /v1/iam/users */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint, NOTHING } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import type { ReauthenticationParts } from '../auth/reauthenticate.ts';
import { authorize } from '../caller/authorize.ts';
import { closed, countedPage, oneOf, tenantFilter, withoutTenant } from '../schema/schemas.ts';
import type { UserSessionParts } from '../sessions/of-user.ts';
import { userSessionEndpoints } from '../sessions/routes.ts';
import { createUser } from './create.ts';
import { startPasswordReset } from './credentials.ts';
import {
  CreatedUser,
  directoryStatus,
  newUser,
  PasswordReset,
  passwordResetRequest,
  User,
  userChanges,
} from './entity.ts';
import { getUser, listUsersPage, userOrders } from './find.ts';
import { activateUser, deactivateUser, deleteUser, unlockUser } from './status.ts';
import { updateUser } from './update.ts';

/** A filter that is there or not. */
const only = (description: string) => Type.Unsafe<true>({ type: 'boolean', enum: [true], description });

const filters = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    sort: userOrders.parameter,
    role: Type.Optional(Type.String({ maxLength: 64 })),
    status: Type.Optional(oneOf('active', 'deactivated')),
    email: Type.Optional(Type.String({ maxLength: 254 })),
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Any part of the name, email address or department, in any case.',
      }),
    ),
    locked: Type.Optional(only('`true`: users whose account is locked by failed logins now.')),
    directory_status: Type.Optional(directoryStatus),
    email_conflict: Type.Optional(only('`true`: users of a directory whose address another user has.')),
  },
  closed,
);

/** Codes of changes that need the current password if the caller makes them for itself. */
const OF_OWN_CREDENTIALS = ['reauthentication_required', 'too_many_attempts'] as const;

export type UserParts = UserSessionParts & ReauthenticationParts;

const users = resourceEndpoints({
  path: '/v1/iam/users',
  param: 'id',
  type: 'user',
  nouns: ['user', 'users'],
  schema: User,
  permission: 'admin:users',
});

export function userEndpoints(parts: UserParts): readonly Endpoint[] {
  return [
    users.list({
      operationId: 'listUsers',
      summary: 'List users.',
      query: filters,
      run: ({ caller, query }) => listUsersPage(parts, caller, withoutTenant(query)),
    }),
    users.create({
      operationId: 'createUser',
      summary: 'Create a user.',
      body: newUser,
      query: NOTHING,
      shows: { description: 'The user.', schema: CreatedUser },
      refusals: ['escalation', 'already_exists', 'quota_exceeded'],
      run: async ({ body, callerIn }) => {
        const { tenant_id: tenantId, ...request } = body;
        const caller = await callerIn(tenantId);
        authorize(caller, 'admin:users');
        return createUser(parts, caller, request);
      },
    }),
    users.get({
      operationId: 'getUser',
      summary: 'Get a user.',
      run: ({ caller }, id) => getUser(parts, caller, id),
    }),
    users.update({
      operationId: 'updateUser',
      summary: 'Update a user: the members that are present.',
      body: userChanges,
      query: NOTHING,
      refusals: ['escalation', 'last_admin', 'already_exists', ...OF_OWN_CREDENTIALS],
      run: ({ caller, body, throttledAs }, id) => {
        const { current_password: currentPassword, ...changes } = body;
        return updateUser(parts, caller, id, changes, { currentPassword, throttledAs });
      },
    }),
    users.delete({
      operationId: 'deleteUser',
      summary: 'Delete a user. Its keys are revoked, and its email address can be used again.',
      query: NOTHING,
      refusals: ['escalation', 'last_admin'],
      run: ({ caller }, id) => deleteUser(parts, caller, id),
    }),
    users.action('deactivate', {
      operationId: 'deactivateUser',
      summary: 'Deactivate a user. Its sessions end, and its keys stop working until it is activated.',
      body: NOTHING,
      query: NOTHING,
      refusals: ['escalation', 'last_admin'],
      run: ({ caller }, id) => deactivateUser(parts, caller, id),
    }),
    users.action('activate', {
      operationId: 'activateUser',
      summary: 'Activate a user. Its keys work again.',
      body: NOTHING,
      query: NOTHING,
      refusals: ['escalation', 'quota_exceeded'],
      run: ({ caller }, id) => activateUser(parts, caller, id),
    }),
    users.action('unlock', {
      operationId: 'unlockUser',
      summary: 'Unlock a user. The failed logins of the account no longer count.',
      body: NOTHING,
      query: NOTHING,
      refusals: ['escalation', 'reauthentication_required'],
      run: ({ caller }, id) => unlockUser(parts, caller, id),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/users/:id/password-reset',
      target: { type: 'user', param: 'id' },
      operationId: 'resetUserPassword',
      summary: 'Create a one-time token that sets a new password for the user.',
      permission: 'admin:users',
      body: passwordResetRequest,
      query: NOTHING,
      answers: shows('The one-time token.', PasswordReset),
      refusals: ['not_found', 'escalation', 'precondition_failed', ...OF_OWN_CREDENTIALS],
      handler: async ({ caller, param, body, throttledAs }) => {
        const presented = { currentPassword: body.current_password, throttledAs };
        return { status: 200, body: await startPasswordReset(parts, caller, param('id'), presented) };
      },
    }),
    ...userSessionEndpoints(parts),
  ];
}
