/**
 * The SecurityPolicies by which a route, a listener or a Gateway could lose Postern's check, and the answer of the
 * chart's ValidatingAdmissionPolicy to each.
 */

type Spec = Readonly<Record<string, unknown>>;
type Answer = 'admitted' | 'refused';

/** The owner of a namespace, who may write every SecurityPolicy in it. */
export const OWNER = 'owner';

export interface PolicyCase {
  /** A sentence. */
  readonly name: string;
  /** Default: `ai`, the namespace of the Gateway. */
  readonly namespace?: string;
  /** The policy that exists; the case changes or deletes it. Default: none, and the case creates one. */
  readonly before?: Spec;
  /** The policy to write; undefined = the case deletes it. */
  readonly spec: Spec | undefined;
  /** Default: the owner of the namespace. */
  readonly by?: 'administrator';
  readonly answer: Answer;
}

const GROUP = 'gateway.networking.k8s.io';
const GATEWAY = { group: GROUP, kind: 'Gateway', name: 'ai' };
const ROUTE = { group: GROUP, kind: 'HTTPRoute', name: 'chat' };
const CORS = { allowOrigins: ['https://app.example.com'] };
const JWT = { providers: [{ name: 'own', remoteJWKS: { uri: 'https://issuer.example.com/jwks.json' } }] };
const BACKEND = { name: 'postern-grpc', namespace: 'postern', port: 9191 };
const EXT_AUTH = { grpc: { backendRefs: [BACKEND] }, timeout: '500ms', statusOnError: 503 };
const GUARD = { targetRefs: [GATEWAY], extAuth: EXT_AUTH };

function ofRoute(more: Spec): Spec {
  return { targetRefs: [ROUTE], ...more };
}

function created(name: string, answer: Answer, spec: Spec): PolicyCase {
  return { name, answer, spec };
}

export const POLICY_CASES: readonly PolicyCase[] = [
  created('an empty policy of a route', 'refused', ofRoute({})),
  created('an empty policy of a rule', 'refused', { targetRefs: [{ ...ROUTE, sectionName: 'stream' }] }),
  created('CORS of a route without mergeType', 'refused', ofRoute({ cors: CORS })),
  created('CORS of a route with mergeType', 'admitted', ofRoute({ mergeType: 'StrategicMerge', cors: CORS })),
  created('JWT of a route without mergeType', 'refused', ofRoute({ jwt: JWT })),
  created('JWT of a route with mergeType', 'admitted', ofRoute({ mergeType: 'JSONMerge', jwt: JWT })),
  created(
    'mergeType with extAuth of another server',
    'refused',
    ofRoute({ mergeType: 'StrategicMerge', extAuth: { grpc: { backendRefs: [{ name: 'yes', port: 9191 }] } } }),
  ),
  created(
    'mergeType with failOpen',
    'refused',
    ofRoute({ mergeType: 'StrategicMerge', extAuth: { ...EXT_AUTH, failOpen: true } }),
  ),
  created('mergeType with extAuth of Postern', 'admitted', ofRoute({ mergeType: 'JSONMerge', extAuth: EXT_AUTH })),
  created('the policy of a Gateway with extAuth', 'admitted', GUARD),
  created('a policy of a Gateway without extAuth', 'refused', { targetRefs: [GATEWAY], cors: CORS }),
  created('a policy of a Gateway with extAuth of another server by HTTP', 'refused', {
    targetRefs: [GATEWAY],
    extAuth: { http: { backendRefs: [BACKEND] } },
  }),
  created('a policy of a listener without extAuth', 'refused', { targetRefs: [{ ...GATEWAY, sectionName: 'http' }] }),
  created('a policy of a listener with extAuth of Postern', 'admitted', {
    targetRefs: [{ ...GATEWAY, sectionName: 'http' }],
    extAuth: EXT_AUTH,
  }),
  created('a policy of a ListenerSet', 'refused', { targetRefs: [{ ...ROUTE, kind: 'ListenerSet' }], cors: CORS }),
  created('a policy of a GRPCRoute', 'refused', { targetRefs: [{ ...ROUTE, kind: 'GRPCRoute' }], cors: CORS }),
  created('a policy that selects routes by labels', 'refused', {
    targetSelectors: [{ kind: 'HTTPRoute', matchLabels: { app: 'chat' } }],
  }),
  created('a policy that names a Gateway and selects routes, with extAuth of another server', 'refused', {
    targetRefs: [GATEWAY],
    targetSelectors: [{ kind: 'HTTPRoute', matchLabels: { app: 'chat' } }],
    extAuth: { grpc: { backendRefs: [{ name: 'yes', port: 9191 }] } },
  }),
  created('an empty list of targets beside a selector', 'refused', {
    targetRefs: [],
    targetSelectors: [{ kind: 'HTTPRoute', matchLabels: { app: 'chat' } }],
    cors: CORS,
  }),
  created('the deprecated targetRef of a route', 'refused', { targetRef: ROUTE, cors: CORS }),
  created("an MCPRoute's policy, which its controller makes from oauth", 'refused', ofRoute({ jwt: JWT })),
  created(
    "an MCPRoute's policy, which its controller makes from oauth and extAuth of Postern",
    'admitted',
    ofRoute({ jwt: JWT, extAuth: EXT_AUTH }),
  ),
  created(
    'extAuth of a Backend that has the name of the Service',
    'refused',
    ofRoute({
      extAuth: { grpc: { backendRefs: [{ ...BACKEND, group: 'gateway.envoyproxy.io', kind: 'Backend' }] } },
    }),
  ),
  created(
    'extAuth of a Service of that name in the own namespace',
    'refused',
    ofRoute({ extAuth: { grpc: { backendRefs: [{ name: 'postern-grpc', port: 9191 }] } } }),
  ),
  created(
    "extAuth of another port of Postern's Service, which has no other",
    'admitted',
    ofRoute({ extAuth: { grpc: { backendRefs: [{ ...BACKEND, port: 9292 }] } } }),
  ),
  created(
    'extAuth of Postern and of another server',
    'refused',
    ofRoute({ extAuth: { grpc: { backendRefs: [BACKEND, { name: 'yes', port: 9191 }] } } }),
  ),
  created(
    'extAuth that switches Postern to the trial',
    'refused',
    ofRoute({
      extAuth: { ...EXT_AUTH, contextExtensions: [{ name: 'postern.mode', type: 'Value', value: 'shadow' }] },
    }),
  ),
  created(
    'extAuth that hides headers from Postern',
    'refused',
    ofRoute({ extAuth: { ...EXT_AUTH, headersToExtAuth: ['authorization'] } }),
  ),
  { name: 'a policy in a namespace that is not guarded', namespace: 'other', spec: ofRoute({}), answer: 'admitted' },
  {
    name: 'a policy in a namespace that is not guarded, which selects routes of all namespaces',
    namespace: 'other',
    spec: { targetSelectors: [{ kind: 'HTTPRoute', namespaces: { from: 'All' }, matchLabels: { app: 'chat' } }] },
    answer: 'refused',
  },
  {
    name: 'an update that removes mergeType',
    before: ofRoute({ mergeType: 'StrategicMerge', cors: CORS }),
    spec: ofRoute({ cors: CORS }),
    answer: 'refused',
  },
  {
    name: 'an update of the CORS settings of a policy with mergeType',
    before: ofRoute({ mergeType: 'StrategicMerge', cors: CORS }),
    spec: ofRoute({ mergeType: 'StrategicMerge', cors: { ...CORS, allowMethods: ['GET'] } }),
    answer: 'admitted',
  },
  {
    name: "an update that removes extAuth from the Gateway's policy",
    before: GUARD,
    spec: { targetRefs: [GATEWAY], cors: CORS },
    answer: 'refused',
  },
  {
    name: "an update that moves the Gateway's policy to another Gateway",
    before: GUARD,
    spec: { ...GUARD, targetRefs: [{ ...GATEWAY, name: 'other' }] },
    answer: 'refused',
  },
  {
    name: "an update of the timeout of the Gateway's policy",
    before: GUARD,
    spec: { ...GUARD, extAuth: { ...EXT_AUTH, timeout: '1s' } },
    answer: 'admitted',
  },
  {
    name: "the administrator's move of the Gateway's policy",
    by: 'administrator',
    before: GUARD,
    spec: { ...GUARD, targetRefs: [{ ...GATEWAY, name: 'other' }] },
    answer: 'admitted',
  },
  { name: "the deletion of the Gateway's policy", before: GUARD, spec: undefined, answer: 'refused' },
  {
    name: "the administrator's deletion of the Gateway's policy",
    by: 'administrator',
    before: GUARD,
    spec: undefined,
    answer: 'admitted',
  },
  {
    name: "the deletion of a route's policy",
    before: ofRoute({ mergeType: 'StrategicMerge', cors: CORS }),
    spec: undefined,
    answer: 'admitted',
  },
];
