/** The parts that the use cases of webhooks need, in addition to those of every use case. */

import type { SecretKeys } from '../../identity/seal.ts';
import type { AdminParts } from '../caller/caller.ts';
import type { SendParts } from './attempt.ts';

export interface WebhookParts extends AdminParts, SecretKeys {
  readonly webhooks: SendParts;
}
