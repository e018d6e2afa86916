/** The text that the demo prints when it is ready: addresses, credentials, and requests to paste. */

import type { BootstrapOutcome } from '../iam/users/bootstrap.ts';
import { TRIAL_LIMITS } from './demo-setup.ts';
import { WORKLOAD } from './demo-workload.ts';

interface BannerParts {
  /** All addresses are `host:port`. */
  readonly envoy: string;
  readonly http: string;
  readonly admin: string | undefined;
  readonly upstream: string;
  readonly administrator: BootstrapOutcome;
  readonly administratorEmail: string;
  /** Shown only here; the server does not store it. */
  readonly key: string;
  /** The email address of the key's owner. */
  readonly owner: string;
  /** A key of the tenant with small limits. */
  readonly trialKey: string;
  /** The value of `iss` of the demo's issuer. */
  readonly issuer: string;
  /** The address at which the demo's receiver shows the latest events of the webhook of acme. */
  readonly events: string;
  /** A token of that issuer. */
  readonly workloadToken: string;
}

const LABEL_WIDTH = 18;
const { requestsPerMinute, monthlyTokens } = TRIAL_LIMITS;

export function banner(parts: BannerParts): string {
  const { envoy, http, admin, upstream, key, owner, trialKey, issuer, events, workloadToken } = parts;
  const base = `http://${envoy}`;
  const lines = [
    '',
    '  Postern is running.',
    '',
    row('Envoy', base, 'the proxy in front of the platform; send every request here'),
    row('Console', `${base}/console/?tenant=acme`, 'open it in a browser and sign in as the administrator below'),
    row('HTTP API', `http://${http}`, 'logins and management; Envoy serves /v1/auth and /v1/iam too'),
    ...(admin === undefined ? [] : [row('Metrics', `http://${admin}/metrics`, 'and /readyz, /healthz')]),
    row('Issuer', issuer, 'a small provider of the demo, whose tokens the tenant acme accepts'),
    row('Events', events, 'the latest events of a webhook of acme; a locked login is among them within seconds'),
    row('Upstream ledger', `http://${upstream}/ledger`, 'the usage that the stand-in AI platform reported'),
    '',
    ...administratorRows(parts),
    row('API key', key, `created at this start; belongs to ${owner}, a developer in the tenant acme`),
    row(
      'Trial key',
      trialKey,
      `created at this start; the tenant trial may send ${requestsPerMinute} requests a minute and use ${monthlyTokens} tokens a month`,
    ),
    '',
    '  Allowed (200)',
    `    ${chat(base, key, 'llama-3')}`,
    '',
    '  Allowed with a signed token (200): Envoy verifies x-postern-token on this route',
    `    curl -i -X POST ${base}/v1/agents/helper/runs -H 'Authorization: Bearer ${key}'`,
    '',
    `  Allowed with a token of another issuer (200): it proves the key ${WORKLOAD}, which has no secret (valid for 24 h)`,
    `    ${chat(base, workloadToken, 'llama-3')}`,
    '',
    '  Denied by role (403 insufficient_permission): a developer may not list models',
    `    curl -i ${base}/v1/models -H 'Authorization: Bearer ${key}'`,
    '',
    '  Denied by policy (403 denied_by_policy): no-secret-models',
    `    ${chat(base, key, 'gpt-secret')}`,
    '',
    `  Limited (429 rate_limit_exceeded after ${requestsPerMinute}): the trial tenant in a loop`,
    `    for i in $(seq 12); do ${chat(base, trialKey, 'llama-3', "-s -o /dev/null -w '%{http_code} '")}; done`,
    '',
    '  Press Ctrl-C to stop everything. The data is kept.',
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function administratorRows({ administrator, administratorEmail }: BannerParts): string[] {
  if (administrator.kind === 'present') {
    return [
      row(
        'Administrator',
        administratorEmail,
        'the first start showed the password; "npm run postern -- reset-admin" sets a new one',
      ),
    ];
  }
  const { email, madePassword } = administrator;
  return [
    row('Administrator', email),
    madePassword === undefined
      ? row('Password', 'as set in bootstrap.password')
      : row('Password', madePassword, 'shown only once'),
  ];
}

function row(label: string, value: string, note?: string): string {
  return `  ${label.padEnd(LABEL_WIDTH)}${value}${note === undefined ? '' : `  (${note})`}`;
}

/** Only single quotes, so that no shell changes the text. */
function chat(base: string, key: string, model: string, options = '-i'): string {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
  return `curl ${options} ${base}/v1/chat/completions -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '${body}'`;
}
