import type { Attack } from '../attack.ts';
import { cancelledChecks } from './cancelled-checks.ts';
import { costlyBodies } from './costly-bodies.ts';
import { crowdedRole } from './crowded-role.ts';
import { fullTenant } from './full-tenant.ts';
import { globKey } from './glob-key.ts';
import { loginJson } from './login-json.ts';
import { longModel } from './long-model.ts';
import { madeUpKeys } from './made-up-keys.ts';
import { manyKeys } from './many-keys.ts';
import { members } from './members.ts';
import { rapidReset } from './rapid-reset.ts';
import { simulate } from './simulate.ts';
import { stuckTenant } from './stuck-tenant.ts';
import { traceHeaders } from './trace-headers.ts';
import { unfinishedBodies } from './unfinished-bodies.ts';
import { unfinishedMessages } from './unfinished-messages.ts';

export const ATTACKS: readonly Attack[] = [
  loginJson,
  simulate,
  globKey,
  members,
  fullTenant,
  rapidReset,
  unfinishedBodies,
  cancelledChecks,
  unfinishedMessages,
  longModel,
  madeUpKeys,
  manyKeys,
  costlyBodies,
  traceHeaders,
  stuckTenant,
  crowdedRole,
];
