/** /v1/iam/users */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import type { ReauthenticationParts } from '../auth/reauthenticate.ts';
import { authorize } from '../caller/authorize.ts';
import { reachesAllTenants } from '../caller/caller.ts';
import { closed, countedPage, tenantFilter } from '../schema/schemas.ts';
import type { SessionParts } from '../sessions/active.ts';
import { userSessionEndpoints } from '../sessions/routes.ts';
import { changeSeveralUsers, changeUsersOfTenants } from './change-several.ts';
import { startPasswordReset } from './credentials.ts';
import { CreatedUser, newUser, PasswordReset, passwordResetRequest, User, userChanges, userFilters } from './entity.ts';
import { getUser, listUsersPage, userOrders } from './find.ts';
import { MAX_CHANGED, severalUsers, UserChangesReport, userTrial } from './several-schemas.ts';
import { activateUser, createUser, deactivateUser, deleteUser, unlockUser, updateUser } from './write.ts';

const filters = Type.Object({ ...countedPage, ...tenantFilter, sort: userOrders.parameter, ...userFilters }, closed);

/** Codes of changes that need the current password if the caller makes them for itself. */
const OF_OWN_CREDENTIALS = ['reauthentication_required', 'too_many_attempts'] as const;

export type UserParts = SessionParts & ReauthenticationParts;

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
      run: ({ caller, query }) => listUsersPage(parts, caller, query),
    }),
    users.create({
      operationId: 'createUser',
      summary: 'Create a user.',
      body: newUser,
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
      refusals: ['escalation', 'last_admin', 'already_exists', 'quota_exceeded', ...OF_OWN_CREDENTIALS],
      run: ({ caller, body, throttledAs }, id) => {
        const { current_password: currentPassword, ...changes } = body;
        return updateUser(parts, caller, id, changes, { currentPassword, throttledAs });
      },
    }),
    users.delete({
      operationId: 'deleteUser',
      summary: 'Delete a user. Its keys are revoked, and its email address can be used again.',
      refusals: ['escalation', 'last_admin'],
      run: ({ caller }, id) => deleteUser(parts, caller, id),
    }),
    users.action('deactivate', {
      operationId: 'deactivateUser',
      summary: 'Deactivate a user. Its sessions end, and its keys stop working until it is activated.',
      refusals: ['escalation', 'last_admin'],
      run: ({ caller }, id) => deactivateUser(parts, caller, id),
    }),
    users.action('activate', {
      operationId: 'activateUser',
      summary: 'Activate a user. Its keys work again.',
      refusals: ['escalation', 'quota_exceeded'],
      run: ({ caller }, id) => activateUser(parts, caller, id),
    }),
    severalUsersEndpoint(parts),
    users.action('unlock', {
      operationId: 'unlockUser',
      summary: 'Unlock a user. The failed logins of the account no longer count.',
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
      answers: shows('The one-time token.', PasswordReset),
      refusals: ['not_found', 'escalation', 'precondition_failed', ...OF_OWN_CREDENTIALS],
      run: ({ caller, param, body, throttledAs }) =>
        startPasswordReset(parts, caller, param('id'), { currentPassword: body.current_password, throttledAs }),
    }),
    ...userSessionEndpoints(parts),
  ];
}

function severalUsersEndpoint(parts: UserParts): Endpoint {
  return callerEndpoint({
    method: 'POST',
    path: '/v1/iam/users/change',
    operationId: 'changeUsers',
    summary: `Deactivate up to ${MAX_CHANGED} users, or add or remove one of their roles, by id or by a filter.`,
    permission: 'admin:users',
    body: severalUsers,
    query: userTrial,
    answers: shows('The outcome of each user, or with `dry_run` the outcome that it would have.', UserChangesReport),
    refusals: ['escalation'],
    run: (input) => {
      const { caller, body, query } = input;
      const isDryRun = query.dry_run === true;
      return body.ids !== undefined && body.filter === undefined && reachesAllTenants(input)
        ? changeUsersOfTenants(parts, input, { ...body, ids: body.ids }, isDryRun)
        : changeSeveralUsers(parts, caller, body, isDryRun);
    },
  });
}
