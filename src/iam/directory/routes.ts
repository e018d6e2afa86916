/** /v1/iam/directory */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import type { DirectoryService } from '../auth/directory-service.ts';
import { authorize } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { MAX_USERNAME_LENGTH } from '../change/audit-row.ts';
import { component, described, filterText, optionalText, shownText } from '../schema/keywords.ts';
import { closed, oneOf } from '../schema/schemas.ts';
import { type DirectoryTestParts, testDirectory } from './test.ts';

const question = component(
  'DirectoryTestRequest',
  Type.Object(
    {
      username: Type.String({ maxLength: MAX_USERNAME_LENGTH, description: 'The username as in a login.' }),
      password: optionalText(1024, 'If absent, the test runs all steps except the bind as the user.'),
      directory: filterText(64, '`ldap.name`. Default: the directory that a login with this name would use first.'),
    },
    { ...closed, examples: [{ username: 'alice' }] },
  ),
);

const steps = component(
  'DirectoryTest',
  Type.Object({
    steps: Type.Array(
      Type.Object({
        step: oneOf(
          'connect',
          'tls',
          'service_bind',
          'find_user',
          'user_bind',
          'attributes',
          'groups',
          'roles',
          'tenant',
        ),
        ok: Type.Boolean(),
        detail: shownText('The outcome.'),
        advice: Type.Optional(shownText('How to correct the problem.')),
        data: Type.Optional(
          Type.Object(
            {},
            { additionalProperties: true, description: 'The values that the step found, without secrets.' },
          ),
        ),
      }),
      { description: 'The steps in order, up to the first that failed.' },
    ),
  }),
);

const configured = component(
  'Directories',
  Type.Object({
    directories: Type.Array(
      Type.Object({
        name: shownText('`ldap.name`.'),
        status: described(
          oneOf('up', 'down', 'unknown'),
          'Whether the directory answered the last login, refresh or lookup of this server. `unknown`: there was none since its start.',
        ),
      }),
      { description: 'In the order of the configuration.' },
    ),
  }),
);

export function directoryEndpoints(parts: DirectoryTestParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/directory',
      operationId: 'listDirectories',
      summary: 'List the configured directories, and whether each answers.',
      permission: 'admin:tenants',
      answers: shows('The configured directories.', configured),
      run: async ({ caller }) => listDirectories(parts.directory, caller),
    }),
    callerEndpoint({
      method: 'POST',
      path: '/v1/iam/directory/test',
      operationId: 'testDirectory',
      summary:
        'Test a directory login and report each step. The server creates no session and no user. A wrong password counts as a failed login.',
      permission: 'admin:tenants',
      body: question,
      answers: shows('The steps and their outcomes.', steps),
      refusals: ['not_found', 'too_many_attempts'],
      run: ({ caller, body }) => testDirectory(parts, caller, body),
    }),
  ];
}

interface ConfiguredDirectory {
  readonly name: string;
  readonly status: 'up' | 'down' | 'unknown';
}

/**
 * @param service undefined = no directory is configured
 * @throws Refusal `insufficient_permission` unless the caller is a platform administrator
 */
export function listDirectories(
  service: DirectoryService | undefined,
  caller: Caller,
): { readonly directories: readonly ConfiguredDirectory[] } {
  authorize(caller, 'admin:tenants');
  return { directories: (service?.names ?? []).map((name) => ({ name, status: statusOf(service?.isUp(name)) })) };
}

function statusOf(isUp: boolean | undefined): ConfiguredDirectory['status'] {
  if (isUp === undefined) return 'unknown';
  return isUp ? 'up' : 'down';
}
