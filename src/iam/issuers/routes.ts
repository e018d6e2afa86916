/** /v1/iam/issuers */

import { Type } from 'typebox';
import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { resourceEndpoints } from '../../http/resource-endpoints.ts';
import { component } from '../schema/keywords.ts';
import { closed, countedPage, forced, tenantFilter, timeParameter } from '../schema/schemas.ts';
import { Issuer, issuerChanges, issuerFilter, newIssuer } from './entity.ts';
import type { IssuerParts } from './parts.ts';
import { getIssuer, listIssuersPage } from './read.ts';
import { deleteIssuer, refreshIssuer, revokeBefore } from './revoke.ts';
import { issuerTest, issuerTestRequest, testIssuer } from './test.ts';
import { createIssuer, updateIssuer } from './write.ts';

const listing = Type.Object({ ...countedPage, ...tenantFilter, ...issuerFilter.properties }, closed);

const revocation = component(
  'IssuerRevocation',
  Type.Object(
    {
      time: timeParameter('Tokens that were issued earlier are refused. Default: now.'),
    },
    { ...closed, examples: [{}] },
  ),
);

const ISSUER = '/v1/iam/issuers/:id';

const issuers = resourceEndpoints({
  path: '/v1/iam/issuers',
  param: 'id',
  type: 'issuer',
  nouns: ['issuer', 'issuers'],
  schema: Issuer,
  permission: 'admin:issuers',
});

export function issuerEndpoints(parts: IssuerParts): readonly Endpoint[] {
  return [
    issuers.list({
      operationId: 'listIssuers',
      summary: 'List issuers.',
      query: listing,
      run: ({ caller, query }) => listIssuersPage(parts, caller, query),
    }),
    issuers.create({
      operationId: 'createIssuer',
      summary: 'Create an issuer, whose tokens the tenant then accepts.',
      body: newIssuer,
      refusals: ['escalation', 'already_exists', 'quota_exceeded'],
      run: ({ caller, body }) => createIssuer(parts, caller, body),
    }),
    issuers.get({
      operationId: 'getIssuer',
      summary: 'Get an issuer, with the state of its keys.',
      run: ({ caller }, id) => getIssuer(parts, caller, id),
    }),
    issuers.update({
      operationId: 'updateIssuer',
      summary: 'Update an issuer: the members that are present. A wider change applies to tokens issued after it.',
      body: issuerChanges,
      refusals: ['escalation', 'already_exists'],
      run: ({ caller, body }, id) => updateIssuer(parts, caller, id, body),
    }),
    issuers.delete({
      operationId: 'deleteIssuer',
      summary:
        'Delete an issuer. With `force=true`, keys with a proof of it are revoked, and linked users lose the link and its roles.',
      query: forced,
      refusals: ['in_use', 'escalation'],
      run: ({ caller, query }, id) => deleteIssuer(parts, caller, id, query.force === true),
    }),
    issuers.action('revoke-before', {
      operationId: 'revokeTokensBefore',
      summary: 'Refuse the tokens that were issued before a time, and end the sessions that began with such tokens.',
      body: revocation,
      run: ({ caller, body }, id) => revokeBefore(parts, caller, id, body.time),
    }),
    callerEndpoint({
      method: 'POST',
      path: `${ISSUER}/test`,
      target: { type: 'issuer', param: 'id' },
      operationId: 'testIssuer',
      summary: 'Test a token at an issuer, also at a disabled one, and report each step. Nothing is stored.',
      permission: 'admin:issuers',
      onlyReads: true,
      body: issuerTestRequest,
      answers: shows('The steps, their outcomes, and the principal.', issuerTest),
      refusals: ['not_found'],
      run: ({ caller, body, param }) => testIssuer(parts, caller, param('id'), body.token),
    }),
    callerEndpoint({
      method: 'POST',
      path: `${ISSUER}/refresh`,
      target: { type: 'issuer', param: 'id' },
      operationId: 'refreshIssuerKeys',
      summary: 'Fetch the keys of an issuer now. `keys.error` has the reason if that failed.',
      permission: 'admin:issuers',
      answers: shows('The issuer after the attempt.', Issuer),
      refusals: ['not_found', 'invalid_field', 'precondition_failed'],
      run: ({ caller, param }) => refreshIssuer(parts, caller, param('id')),
    }),
  ];
}
