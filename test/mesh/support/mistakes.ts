/**
 * Mistakes in manifests that every schema accepts, and that let requests pass without a check, deny all of them, or
 * show credentials to the network.
 */

import { at, isMapping, listAt, type Mapping } from './guides.ts';

/** Returns the mistakes in the documents of one guide, which together configure one gateway. */
export function mistakesOf(documents: readonly Mapping[]): readonly string[] {
  const providers = documents.flatMap((one) => listAt(one, 'meshConfig', 'extensionProviders'));
  return documents.flatMap((one) => {
    switch (one['kind']) {
      case 'AuthorizationPolicy':
        return ofAuthorizationPolicy(one, providers);
      case 'SecurityPolicy':
        return ofSecurityPolicy(one);
      case 'GatewayExtension':
        return ofGatewayExtension(one);
      case 'TrafficPolicy':
        return ofTrafficPolicy(one, documents);
      case 'AgentgatewayPolicy':
        return at(one, 'spec', 'traffic') === undefined ? [] : ofAgentgatewayPolicy(one);
      default:
        return [
          ...providersOf(one).flatMap((provider) => [...ofProvider(provider), ...ofClearText(provider, documents)]),
          ...listAt(one, 'binds').flatMap((bind) => listAt(bind, 'listeners').flatMap(ofAgentgatewayListener)),
        ];
    }
  });
}

function providersOf(document: Mapping): readonly unknown[] {
  return listAt(document, 'meshConfig', 'extensionProviders')
    .map((provider) => at(provider, 'envoyExtAuthzGrpc'))
    .filter((provider) => provider !== undefined);
}

function ofProvider(provider: unknown): string[] {
  return [
    ...(at(provider, 'failOpen') === true ? ['the provider fails open'] : []),
    ...(at(provider, 'timeout') === undefined ? ['the provider has no timeout: Istio waits 600 s'] : []),
    ...(at(provider, 'statusOnError') === '503' ? [] : ['the provider answers a fault with 403']),
    ...(at(provider, 'includeRequestBodyInCheck', 'allowPartialMessage') === true
      ? ['the buffer of a connection limits bodies to 32 KiB']
      : []),
  ];
}

/** Istio encrypts by itself only what it sends to pods with its sidecar. */
function ofClearText(provider: unknown, documents: readonly Mapping[]): string[] {
  const service = at(provider, 'service');
  const isEncrypted = documents.some(
    (one) =>
      one['kind'] === 'DestinationRule' &&
      at(one, 'spec', 'host') === service &&
      at(one, 'spec', 'trafficPolicy', 'tls', 'mode') === 'ISTIO_MUTUAL',
  );
  return isEncrypted ? [] : [`no DestinationRule encrypts what Istio sends to ${String(service)}`];
}

function ofAuthorizationPolicy(policy: Mapping, providers: readonly unknown[]): string[] {
  if (at(policy, 'spec', 'action') !== 'CUSTOM') return [];
  const name = at(policy, 'spec', 'provider', 'name');
  const found = providers.some((one) => at(one, 'name') === name && isMapping(at(one, 'envoyExtAuthzGrpc')));
  const matchesAll = listAt(policy, 'spec', 'rules').some((rule) => isMapping(rule) && Object.keys(rule).length === 0);
  return [
    ...(name === undefined ? ['the policy names no provider: Istio rejects every request'] : []),
    ...(name !== undefined && !found ? [`the mesh has no provider named ${name}: Istio rejects every request`] : []),
    ...(at(policy, 'spec', 'selector') === undefined
      ? []
      : ['the policy selects pods: ztunnel does not support CUSTOM and drops it']),
    ...(matchesAll ? [] : ['the policy has no rule that matches every request: Istio does not check the others']),
  ];
}

function ofSecurityPolicy(policy: Mapping): string[] {
  const check = at(policy, 'spec', 'extAuth');
  const kinds = listAt(policy, 'spec', 'targetRefs').map((ref) => at(ref, 'kind'));
  return [
    ...(check === undefined ? ['the policy has no check, and takes the place of one that has'] : []),
    ...(at(check, 'failOpen') === true ? ['the check fails open'] : []),
    ...(at(check, 'statusOnError') === 503 ? [] : ['the check answers a fault with 403']),
    ...(at(check, 'bodyToExtAuth') === undefined ? ['the check sees no bodies'] : []),
    ...(at(check, 'headersToExtAuth') === undefined
      ? []
      : ['headersToExtAuth hides spellings of guarded headers from the check']),
    ...(kinds.length === 1 && kinds[0] === 'Gateway'
      ? []
      : ['the policy is not for the Gateway: other routes are not checked']),
  ];
}

/** Reports whether the targets are one Gateway. */
function isForGateway(policy: Mapping): boolean {
  const targets = listAt(policy, 'spec', 'targetRefs');
  return targets.length === 1 && at(targets[0], 'kind') === 'Gateway' && at(targets[0], 'sectionName') === undefined;
}

const NOT_FOR_GATEWAY = 'the policy is not for the Gateway: other routes are not checked';

function ofGatewayExtension(extension: Mapping): string[] {
  const check = at(extension, 'spec', 'extAuth');
  return [
    ...(at(check, 'failOpen') === true ? ['the check fails open'] : []),
    ...(at(check, 'statusOnError') === 503 ? [] : ['the check answers a fault with 403']),
    ...(at(check, 'percentageEnabled') === undefined ? [] : ['percentageEnabled lets the other requests pass']),
    ...(at(check, 'headersToForward') === undefined
      ? []
      : ['headersToForward hides spellings of guarded headers from the check']),
    ...(at(check, 'withRequestBody', 'packAsBytes') === true ? [] : ['the check sees no bodies as bytes']),
    ...(at(check, 'grpcService', 'retry', 'attempts') === 0 ? [] : ['the check may be tried again']),
  ];
}

function ofTrafficPolicy(policy: Mapping, documents: readonly Mapping[]): string[] {
  const check = at(policy, 'spec', 'extAuth');
  const wanted = at(check, 'extensionRef', 'name');
  const found = documents.some((one) => one['kind'] === 'GatewayExtension' && at(one, 'metadata', 'name') === wanted);
  return [
    ...(at(check, 'disable') === undefined ? [] : ['the policy switches every check off']),
    ...(found ? [] : ['the policy names no GatewayExtension of the guide']),
    ...(isForGateway(policy) ? [] : [NOT_FOR_GATEWAY]),
  ];
}

function ofAgentgatewayPolicy(policy: Mapping): string[] {
  const traffic = at(policy, 'spec', 'traffic');
  return [
    ...ofAgentgatewayCheck(at(traffic, 'extAuth')),
    ...(at(traffic, 'extAuth', 'forwardBody', 'maxSize') === undefined ? ['the check sees no bodies'] : []),
    ...(at(traffic, 'phase') === 'PreRouting' && at(policy, 'spec', 'strategy', 'inheritance') === 'Override'
      ? []
      : ['a more specific policy can replace the check']),
    ...(isForGateway(policy) ? [] : [NOT_FOR_GATEWAY]),
  ];
}

function ofAgentgatewayListener(listener: unknown): string[] {
  const check = at(listener, 'policies', 'extAuthz');
  const body = at(check, 'includeRequestBody');
  return [
    ...ofAgentgatewayCheck(check),
    ...(at(check, 'failureMode', 'denyWithStatus') === 503 ? [] : ['the check answers a fault with 403']),
    ...(at(check, 'policies', 'http', 'requestTimeout') === undefined ? ['the check has no timeout'] : []),
    ...(at(body, 'maxRequestBytes') === undefined ? ['the check sees no bodies'] : []),
  ];
}

function ofAgentgatewayCheck(check: unknown): string[] {
  return [
    ...(check === undefined ? ['the policy has no check'] : []),
    ...(at(check, 'cache') === undefined ? [] : ['decisions are kept beyond a revocation']),
    ...(at(check, 'conditional') === undefined ? [] : ['requests that meet no condition pass']),
    ...(at(check, 'failureMode') === 'FailOpen' || at(check, 'failureMode') === 'allow'
      ? ['the check fails open']
      : []),
  ];
}
