/**
 * Envoy's configuration for a trial beside another gate: the check in shadow mode, an access log that reports the other
 * gate's denials, and nothing else that changes a request or an answer.
 *
 * Two settings guard the trial against a check that Postern does not take for one in shadow mode: Envoy applies no header
 * of an answer, and no metadata.
 */

import { parse } from 'yaml';
import { SHADOW_LOG } from '../extauthz/access-log/other-gate.ts';
import { at, EXT_AUTHZ, edgeOf, itemNamed, listAt, type Mapping, mapping, ROUTER } from './envoy-config.ts';

const METER = 'envoy.access_loggers.http_grpc';
/** The name of the filter, so that settings of routes for another ext_authz filter do not apply to it. */
const FILTER = 'postern';
const SHADOW = { 'postern.mode': 'shadow' };
/** The share of requests, in percent, that the log reports as a sign of life. */
const REPORTED_PERCENT = 1;

const HEADING = `# Envoy with Postern's check in shadow mode: Postern decides every request, and Envoy enforces nothing of it. docs/trial.md
# says what to copy into the configuration of an Envoy that you have: the filter "${FILTER}", its settings at the virtual host and at the
# routes, the access log and the clusters postern-grpc and postern-meter. Put the filter of your own gate after the filter "${FILTER}".
#
# shadow_mode and the entry postern.mode of context_extensions belong together: remove both, never one of them.
`;

export { HEADING as SHADOW_HEADING };

/** Settings that change requests, answers of Envoy itself, or what is reported of running requests. */
const CHANGING = [
  'access_log_options',
  'early_header_mutation_extensions',
  'local_reply_config',
  'skip_xff_append',
] as const;

/** @param text envoy/demo.yaml or envoy/production.yaml in agreement with Postern's configuration */
export function shadowConfig(text: string): Mapping {
  const config = mapping(parse(text, { merge: true }));
  const resources = mapping(config['static_resources']);
  const { manager } = edgeOf(config);
  for (const name of CHANGING) delete manager[name];
  const { headers_with_underscores_action: _rejects, ...protocol } = mapping(manager['common_http_protocol_options']);
  manager['common_http_protocol_options'] = protocol;
  manager['access_log'] = listAt(manager, 'access_log').map((log) => (log['name'] === METER ? shadowLog(log) : log));
  const check = mapping(itemNamed(manager, EXT_AUTHZ, 'http_filters')['typed_config']);
  manager['http_filters'] = [
    { name: FILTER, typed_config: shadowCheck(check) },
    itemNamed(manager, ROUTER, 'http_filters'),
  ];
  const host = mapping(listAt(manager, 'route_config', 'virtual_hosts')[0]);
  delete host['response_headers_to_add'];
  host['typed_per_filter_config'] = marked(host);
  host['routes'] = shadowRoutes(listAt(host, 'routes'));
  resources['clusters'] = listAt(resources, 'clusters').filter(({ name }) => name !== 'postern-http');
  return config;
}

function shadowCheck({ deny_at_disable: _denies, ...check }: Mapping): Mapping {
  return {
    ...check,
    shadow_mode: true,
    clear_route_cache: false,
    decoder_header_mutation_rules: { disallow_all: true },
    enable_dynamic_metadata_ingestion: false,
  };
}

/** Reports the denials of another ext_authz filter, and some other requests as a sign of life. */
function shadowLog(meter: Mapping): Mapping {
  const config = mapping(meter['typed_config']);
  const denied = {
    name: 'envoy.access_loggers.extension_filters.cel',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter',
      expression: "response.code_details == 'ext_authz_denied'",
    },
  };
  const some = {
    runtime_key: 'postern.shadow.reported',
    percent_sampled: { numerator: REPORTED_PERCENT, denominator: 'HUNDRED' },
    use_independent_randomness: true,
  };
  return {
    name: METER,
    filter: { or_filter: { filters: [{ extension_filter: denied }, { runtime_filter: some }] } },
    typed_config: { ...config, common_config: { ...mapping(config['common_config']), log_name: SHADOW_LOG } },
  };
}

/** Returns the settings of a virtual host or a route for the check, marked as those of checks in shadow mode. */
function marked(of: Mapping): Mapping {
  const settings = mapping(at(of, 'typed_per_filter_config', EXT_AUTHZ));
  const check = mapping(settings['check_settings']);
  const extensions = check['context_extensions'];
  const context_extensions = { ...(extensions === undefined ? {} : mapping(extensions)), ...SHADOW };
  return { [FILTER]: { ...settings, check_settings: { ...check, context_extensions } } };
}

/**
 * Returns the routes to the platform, each without a limit for its body. Postern's own paths, and the routes that follow
 * an allow, are left out.
 */
function shadowRoutes(routes: readonly Mapping[]): readonly Mapping[] {
  const plain = routes.at(-1)?.['route'];
  return routes.flatMap((route) => {
    const { dynamic_metadata: metadata, ...match } = mapping(route['match']);
    const followsAllow = Array.isArray(metadata) && at(metadata, 0, 'invert') !== true;
    if (followsAllow || at(route, 'route', 'cluster') !== 'upstream') return [];
    return [{ ...route, match, route: plain, typed_per_filter_config: marked(route) }];
  });
}
