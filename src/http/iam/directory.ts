/** /v1/iam/directory */

import { Type } from 'typebox';
import { MAX_NAME_LENGTH } from '../../admin/auth/shown-name.ts';
import { type DirectoryTestParts, testDirectory } from '../../admin/directory/test.ts';
import { component, shows } from '../answers.ts';
import { callerRoute, NOTHING, type Route } from '../route.ts';
import { closed, oneOf } from './schemas.ts';

const question = component(
  'DirectoryTestRequest',
  Type.Object(
    {
      username: Type.String({ maxLength: MAX_NAME_LENGTH, description: 'As a login would send it.' }),
      password: Type.Optional(
        Type.String({ maxLength: 1024, description: "Absent: everything but the person's own bind is tried." }),
      ),
      directory: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: '`ldap.name`. Absent: the directory that a login with this name would ask first.',
        }),
      ),
    },
    { ...closed, examples: [{ username: 'alice' }] },
  ),
);

const steps = component(
  'DirectoryTest',
  Type.Object({
    steps: Type.Array(
      Type.Object({
        step: oneOf('connect', 'tls', 'service_bind', 'find_user', 'user_bind', 'attributes', 'groups', 'roles', 'tenant'),
        ok: Type.Boolean(),
        detail: Type.String({ description: 'What happened.' }),
        advice: Type.Optional(Type.String({ description: 'What to change.' })),
        data: Type.Optional(Type.Object({}, { additionalProperties: true, description: 'What was found, without secrets.' })),
      }),
      { description: 'In order, up to the first that failed.' },
    ),
  }),
);

export function directoryRoutes(parts: DirectoryTestParts): readonly Route[] {
  return [
    callerRoute({
      method: 'POST',
      path: '/v1/iam/directory/test',
      operationId: 'testDirectory',
      summary: 'Try a directory login step by step. Nobody is logged in or made; a wrong password counts as a failed login.',
      permission: 'admin:tenants',
      body: question,
      query: NOTHING,
      answers: shows('The steps and how they ended.', steps),
      refusals: ['not_found', 'too_many_attempts'],
      handler: async ({ caller, body }) => ({ status: 200, body: await testDirectory(parts, caller, body) }),
    }),
  ];
}
