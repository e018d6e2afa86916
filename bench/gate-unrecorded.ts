/**
 * Loaded before the server (`--import`): it decides and counts as ever, and records no recent decisions. For `npm run
 * bench -- gate` alone.
 */

import { RecentDecisions } from '../src/telemetry/recent-decisions.ts';

RecentDecisions.prototype.offer = () => undefined;
