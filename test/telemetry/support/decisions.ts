/** Decisions as the gate comes to them. */

import { compileTenant } from '../../../src/decision/compile.ts';
import type { Allow, Deny, Route } from '../../../src/decision/model.ts';
import { TENANT_KEY } from '../../extauthz/support/little-world.ts';
import { tenantId } from '../../store/seed.ts';

export function allowed(tenant: string, route: Route): Allow {
  const id = tenantId(tenant);
  return {
    kind: 'allow',
    route,
    principal: { ...TENANT_KEY, tenantId: tenantId(tenant) },
    roles: [],
    tenant: compileTenant({ id, status: 'active', settings: {}, quotas: {}, roles: [], policies: [] }),
    resources: [],
    model: undefined,
    maxTokens: undefined,
    defaultModel: undefined,
    askedTokens: undefined,
    askedChoices: 1,
    promptTokens: 0,
    inlineFiles: 0,
  };
}

/** @param tenant the caller's tenant; undefined: unknown caller */
export function denied(code: Deny['code'], tenant: string | undefined, route: Route | undefined): Deny {
  return {
    kind: 'deny',
    code,
    detail: 'Because a test says so.',
    ...(route === undefined ? {} : { route }),
    ...(tenant === undefined ? {} : { principal: { ...TENANT_KEY, tenantId: tenantId(tenant) } }),
  };
}
