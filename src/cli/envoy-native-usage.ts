/**
 * Has Envoy itself count the usage of chats and messages: envoy/demo.yaml or envoy/production.yaml with the filter
 * `ai_protocol_manager`, and with the Lua filter for every answer that this filter does not read.
 */

import { replaced } from './envoy-config.ts';

/** In the files, the first line of the routes that spend tokens, the last filter, and a line of the Lua filter. */
const METERED = `${' '.repeat(14)}# 1. Those that spend tokens.\n`;
const ROUTER = `${' '.repeat(10)}- name: envoy.filters.http.router\n`;
const READS = `${' '.repeat(20)}local found = {}\n`;

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const MANAGER = 'envoy.filters.http.ai_protocol_manager';
const MANAGER_TYPE = `${FILTERS}.ai_protocol_manager.v3.AiProtocolManager`;

/** A longer JSON answer is read by the Lua filter if its length is known. The default of `max_json_body_size`. */
const MAX_JSON_BYTES = 4_194_304;
/** By default, Envoy gives up after 65,536, which an answer may have in tokens. */
const MAX_EVENTS = 1_000_000;

const ROUTES = [
  { path: '/v1/chat/completions/?', protocol: 'OPENAI_CHAT_COMPLETIONS' },
  { path: '/v1/messages/?', protocol: 'ANTHROPIC_MESSAGES' },
] as const;

const FILTER = [
  '# 5. Counts the usage of the answers on the routes that name a protocol.',
  `- name: ${MANAGER}`,
  '  typed_config:',
  `    "@type": ${MANAGER_TYPE}`,
  '    response_handling:',
  `      token_usage: { limits: { max_json_body_size: ${MAX_JSON_BYTES}, max_parsed_sse_events: ${MAX_EVENTS} } }`,
];

/** The filter `ai_protocol_manager` reads whole answers with 2xx in JSON and events. */
const LUA = [
  '-- Envoy counts the usage of this answer by itself.',
  'local length = tonumber(headers:get("content-length") or "0") or 0',
  'if handle:filterContext():get("counted") and find(headers:get(":status"), "^2") and not LINES[kind] and',
  `  (kind == "text/event-stream" or length <= ${MAX_JSON_BYTES}) then return end`,
];

/**
 * @param text envoy/demo.yaml or envoy/production.yaml, whose comments stay
 * @returns the text with one more route for each protocol that Envoy reads, which applies after the check's allow
 */
export function countingNatively(text: string): string {
  const changes: readonly (readonly [string, string])[] = [
    [METERED, `${METERED}${ROUTES.flatMap(routeOf).map(indented(14)).join('')}`],
    [ROUTER, `${FILTER.map(indented(10)).join('')}${ROUTER}`],
    [READS, `${LUA.map(indented(20)).join('')}${READS}`],
  ];
  return changes.reduce((changed, [before, after]) => replaced(changed, before, after), text);
}

function routeOf({ path, protocol }: (typeof ROUTES)[number]): readonly string[] {
  return [
    '- match:',
    `    safe_regex: { regex: "${path}" }`,
    '    headers: [{ name: ":method", string_match: { exact: POST } }]',
    '    dynamic_metadata: [{ filter: envoy.filters.http.ext_authz, path: [{ key: subject }], value: { present_match: true } }]',
    '  request_body_buffer_limit: 1114112',
    '  route: *upstream',
    '  typed_per_filter_config:',
    '    envoy.filters.http.ext_authz:',
    `      "@type": ${FILTERS}.ext_authz.v3.ExtAuthzPerRoute`,
    '      check_settings: { with_request_body: { max_request_bytes: 1048576, allow_partial_message: true } }',
    `    ${MANAGER}:`,
    `      "@type": ${MANAGER_TYPE}PerRoute`,
    `      request: { llm_protocol: ${protocol} }`,
    '    envoy.filters.http.lua:',
    `      "@type": ${FILTERS}.lua.v3.LuaPerRoute`,
    '      filter_context: { counted: true }',
  ];
}

function indented(spaces: number): (line: string) => string {
  return (line) => `${' '.repeat(spaces)}${line}\n`;
}
