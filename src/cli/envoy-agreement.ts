/**
 * Envoy's configuration that agrees with Postern's own: the files in envoy/ with the buffers and the inspected routes
 * of an installation. The built-in routes are in those files already.
 */

import type { Config } from '../config/config.ts';
import type { Route } from '../decision/model.ts';
import { type Part, parseTemplate } from '../decision/templates.ts';
import { replaced } from './envoy-config.ts';

const MIB = 1_048_576;
/** The values in the files. */
const FILE_BODY_BYTES = MIB;
const FILE_BUFFER_BYTES = 1_114_112;
const FILE_BODY_SECONDS = 30;
/** For a body over 1 MiB. */
const SECONDS_PER_MIB = 2;
const INDENT = ' '.repeat(14);
/** In the files, the routes that spend tokens end before the first, and the other inspected ones before the second. */
const METERED_END = `${INDENT}# 2. The others`;
const INSPECTED_END = `${INDENT}# Everything else.`;

/**
 * @param text envoy/demo.yaml or envoy/production.yaml, whose comments stay
 * @returns the text with room for bodies of `inspect.max-body`, with the number of proxies of `client-ip.trusted-hops`,
 *   with the port of `admin.listen`, and with two routes for each configured route that reads its body
 */
export function agreeing(text: string, config: Pick<Config, 'routes' | 'inspect' | 'clientIp' | 'admin'>): string {
  const { routes, inspect, clientIp, admin } = config;
  const { maxBodyBytes } = inspect;
  const reading = routes.filter((route) => route.readsBody);
  const bufferBytes = Math.max(FILE_BUFFER_BYTES, maxBodyBytes + FILE_BUFFER_BYTES - FILE_BODY_BYTES);
  const seconds = FILE_BODY_SECONDS + SECONDS_PER_MIB * Math.max(0, Math.ceil(maxBodyBytes / MIB) - 1);
  const metered = reading.filter(({ tokens }) => tokens);
  const others = reading.filter(({ tokens }) => !tokens);
  const changes: readonly (readonly [string, string])[] = [
    [METERED_END, entries(metered, 'metered') + METERED_END],
    [INSPECTED_END, entries(others, 'inspected') + INSPECTED_END],
    [`max_request_bytes: ${FILE_BODY_BYTES}`, `max_request_bytes: ${maxBodyBytes}`],
    [`buffer_limit_bytes: ${FILE_BUFFER_BYTES}`, `buffer_limit_bytes: ${bufferBytes}`],
    [`body_buffer_limit: ${FILE_BUFFER_BYTES}`, `body_buffer_limit: ${bufferBytes}`],
    [`max_stream_duration: ${FILE_BODY_SECONDS}s`, `max_stream_duration: ${seconds}s`],
    ['xff_num_trusted_hops: 0', `xff_num_trusted_hops: ${clientIp.trustedHops}`],
  ];
  const agreed = changes.reduce((changed, [before, after]) => replaced(changed, before, after), text);
  // Only production has it.
  return agreed.replace(
    `health_check_config: { port_value: 9090 }`,
    `health_check_config: { port_value: ${admin.listen.port} }`,
  );
}

/** Two entries for each route, like those of the built-in routes: before the check's allow, and after it. */
function entries(routes: readonly Route[], kind: 'metered' | 'inspected'): string {
  return routes
    .map(({ method, template }) => {
      const path = JSON.stringify(regexOf(template));
      // The decision takes HEAD for GET.
      const methods = method === 'GET' ? 'safe_regex: { regex: "GET|HEAD" }' : `exact: ${JSON.stringify(method)}`;
      const match = `safe_regex: { regex: ${path} }, headers: [{ name: ":method", string_match: { ${methods} } }]`;
      const route = (matched: string, target: string): readonly string[] => [
        `- match: { ${matched} }`,
        `  request_body_buffer_limit: ${FILE_BUFFER_BYTES}`,
        `  route: *${target}`,
        `  typed_per_filter_config: *${kind}_filters`,
      ];
      return [
        `# ${method} ${template}`,
        ...route(`${match}, dynamic_metadata: *allowed`, 'upstream'),
        ...route(match, 'receiving'),
      ]
        .map((line) => `${INDENT}${line}\n`)
        .join('');
    })
    .join('');
}

/** A regular expression (RE2) that matches the paths of the template, with or without one trailing slash. */
function regexOf(template: string): string {
  const parsed = parseTemplate(template);
  if (parsed.kind === 'error') throw new Error(parsed.message);
  return `${parsed.parts.map(regexOfPart).join('')}/?`;
}

function regexOfPart(part: Part): string {
  switch (part.kind) {
    case 'literal':
      return `/${[...part.text].map(regexOfCharacter).join('')}`;
    case 'one':
      return '/[^/]+';
    case 'more':
      return '/[^/]+(/[^/]+)*';
    case 'rest':
      return '(/.*)?';
    default:
      return part satisfies never;
  }
}

/** RFC 3986, section 2.3. The decision rejects a path in which one of these characters is percent-encoded. */
const UNRESERVED = /^[A-Za-z0-9._~-]$/;

/** A character that may come percent-encoded matches in both forms, because the decision decodes it. */
function regexOfCharacter(character: string): string {
  const plain = character.replace(/[.*+?^${}()|[\]\\]/, '\\$&');
  if (UNRESERVED.test(character)) return plain;
  const encoded = [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  return `(${plain}|(?i:${encoded}))`;
}
