/** The templates of issuers: what each is for, what it asks for, and what to know about its tokens. */

interface TemplateText {
  readonly name: string;
  readonly says: string;
  readonly notes: readonly string[];
}

const cluster = [
  'Pods get such a token from a projected volume: set its audience to the audience of this issuer, and expirationSeconds to 600.',
  'A token works until it expires, even if its pod is gone.',
  'Next, create a key for each service account: its subject is system:serviceaccount:<namespace>:<name>.',
];

export const issuerTemplates = {
  entra: {
    name: 'Entra ID',
    says: 'Microsoft accounts of one directory.',
    notes: [
      'In the manifest of the application, set the access token version to 2. Tokens of version 1 have another issuer.',
      'Users are found by oid. An e-mail address or a preferred_username can be changed by its user, so neither identifies a user.',
      'Map app roles (the claim roles), not groups: of a user with many groups, Entra sends a link in place of the list.',
    ],
  },
  okta: {
    name: 'Okta',
    says: 'People of an Okta organization.',
    notes: [
      'Only a custom authorization server (its address has /oauth2/) signs tokens that others can verify.',
      'In access tokens, sub is the login name, which can change. Users are found by uid.',
      'For the login to the console, add the claims uid and groups to the ID token as well.',
      'Add a claim groups to the authorization server before you map roles from it.',
    ],
  },
  keycloak: {
    name: 'Keycloak',
    says: 'People of one realm.',
    notes: [
      'Keycloak puts only account into aud. Add an Audience mapper with the audience of this issuer to the client.',
      'Roles of the realm are at /realm_access/roles, roles of a client at /resource_access/<client>/roles.',
      'For the login to the console, add the roles to the ID token as well: roles follow the newest token, and one without them takes them away.',
    ],
  },
  google: {
    name: 'Google Workspace',
    says: 'Google accounts of your domains.',
    notes: [
      'Every Google account has tokens of this issuer. The required claim hd lets in only those of your domains.',
      'Google signs ID tokens only, so people sign in to the console with it. An ID token is refused in place of an access token.',
    ],
  },
  github: {
    name: 'GitHub Actions',
    says: 'Workflows of your repositories.',
    notes: [
      'The workflow asks for a token with the audience of this issuer, and needs the permission id-token: write.',
      'Rules go by the ids of owner and repository: names can be given up and taken by others. The format of sub is not the same in all repositories.',
      'The events pull_request_target and pull_request are left out: they run with changes before their review.',
      'Next, create a key that is bound to this issuer. The subject may be repo:*, because the rules choose the repositories.',
    ],
  },
  gitlab: {
    name: 'GitLab',
    says: 'Pipelines of your projects.',
    notes: [
      'The job asks for a token with id_tokens and the audience of this issuer.',
      'Rules go by the ids of namespace and project. The rule on ref_protected lets in protected branches and tags only.',
      'Next, create a key that is bound to this issuer, with a subject such as project_path:acme/*.',
    ],
  },
  kubernetes: {
    name: 'Kubernetes, this cluster',
    says: 'Service accounts of the cluster in which Postern runs.',
    notes: [
      'The operator names the API server in issuers.allowed-hosts, because its address is private.',
      'Anonymous reading of the keys needs a binding of the ClusterRole system:service-account-issuer-discovery to system:unauthenticated.',
      'The certificate authority is in the ConfigMap kube-root-ca.crt of every namespace.',
      ...cluster,
    ],
  },
  eks: {
    name: 'Amazon EKS',
    says: 'Service accounts of an EKS cluster.',
    notes: ['aws eks describe-cluster prints the issuer as cluster.identity.oidc.issuer.', ...cluster],
  },
  gke: {
    name: 'Google GKE',
    says: 'Service accounts of a GKE cluster.',
    notes: [
      'The issuer names project, location and cluster. kubectl get --raw /.well-known/openid-configuration prints it.',
      ...cluster,
    ],
  },
  aks: {
    name: 'Azure AKS',
    says: 'Service accounts of an AKS cluster.',
    notes: [
      'The cluster needs its OIDC issuer turned on. az aks show prints it as oidcIssuerProfile.issuerUrl: its slash at the end counts.',
      ...cluster,
    ],
  },
  pasted: {
    name: 'Kubernetes, pasted keys',
    says: 'Service accounts of a cluster that Postern cannot reach.',
    notes: [
      'kubectl get --raw /openid/v1/jwks prints the key set.',
      'The set is a snapshot. After the cluster changes its keys, paste it again. The list warns after 90 days.',
      ...cluster,
    ],
  },
  spiffe: {
    name: 'SPIFFE',
    says: 'Workloads with a JWT-SVID of one trust domain.',
    notes: [
      'A JWT-SVID needs no iss: the trust domain in sub chooses the issuer.',
      'Only keys with the use jwt-svid of the bundle are taken.',
      'Next, create a key for each workload: its subject is the SPIFFE ID, or a pattern of it.',
    ],
  },
  own: {
    name: 'Any other issuer',
    says: 'An OpenID provider, or any authority that signs JWTs.',
    notes: [
      'Find out which claim identifies a user or a workload for good, and which ones say to whom a token was given.',
      'If others have tokens of the same issuer, add required claims that only yours have.',
    ],
  },
} as const satisfies Readonly<Record<string, TemplateText>>;

interface InputText {
  readonly label: string;
  readonly hint: string;
  readonly fault: string;
}

/** The values that templates ask for. */
export const templateInputs: Readonly<Record<string, InputText>> = {
  directoryId: {
    label: 'Directory id',
    hint: 'The tenant id on the overview page of Entra.',
    fault: 'It has the form 00000000-0000-0000-0000-000000000000.',
  },
  clientId: {
    label: 'Application id',
    hint: 'The client id of the application whose tokens your people get.',
    fault: 'It has no spaces.',
  },
  authorizationServer: {
    label: 'Authorization server',
    hint: 'The issuer address of a custom authorization server.',
    fault: 'It begins with https:// and has /oauth2/ and an id.',
  },
  apiAudience: { label: 'Audience', hint: 'As on the page of the authorization server.', fault: 'It has no spaces.' },
  realm: {
    label: 'Address of the realm',
    hint: 'As in the issuer of the realm’s discovery document.',
    fault: 'It begins with https:// and ends with /realms/ and a name.',
  },
  audience: {
    label: 'Audience',
    hint: 'Whom the tokens are for. Choose one that no other service accepts.',
    fault: 'It has no spaces.',
  },
  googleClientId: {
    label: 'Client id',
    hint: 'Of a web application in the Google Cloud console.',
    fault: 'It ends with .apps.googleusercontent.com.',
  },
  domains: {
    label: 'Domains of your Workspace',
    hint: 'Several are separated by commas.',
    fault: 'A domain such as acme.example.',
  },
  ownerIds: {
    label: 'Id of the owner',
    hint: 'gh api orgs/<name> --jq .id prints it. Several are separated by commas.',
    fault: 'An id is a number, not a name.',
  },
  repositoryIds: {
    label: 'Ids of repositories',
    hint: 'gh api repos/<owner>/<name> --jq .id prints one. Empty: all repositories of the owner.',
    fault: 'An id is a number, not a name.',
  },
  gitlab: {
    label: 'Address of GitLab',
    hint: 'Without a path.',
    fault: 'It begins with https:// and has no path.',
  },
  namespaceIds: {
    label: 'Id of the group',
    hint: 'On the page of the group. Several are separated by commas.',
    fault: 'An id is a number, not a name.',
  },
  projectIds: {
    label: 'Ids of projects',
    hint: 'Empty: all projects of the group.',
    fault: 'An id is a number, not a name.',
  },
  cluster: {
    label: 'Issuer of the cluster',
    hint: 'kubectl get --raw /.well-known/openid-configuration prints it.',
    fault: 'It is not the form of an issuer of such a cluster.',
  },
  namespaces: {
    label: 'Namespaces',
    hint: 'Only their pods. Several are separated by commas.',
    fault: 'Lower-case letters, digits and -.',
  },
  ca: {
    label: 'Certificate authority',
    hint: 'PEM. Empty if a public authority signed the certificate of the API server.',
    fault: 'PEM begins with -----BEGIN CERTIFICATE-----.',
  },
  keySet: { label: 'Key set (JWKS)', hint: 'As printed, with its braces.', fault: 'JSON with a list of keys.' },
  trustDomain: {
    label: 'Trust domain',
    hint: 'Without spiffe://.',
    fault: 'Lower-case letters, digits, dots, - and _.',
  },
  bundle: {
    label: 'Address of the bundle',
    hint: 'The bundle endpoint of the trust domain. A bundle can be pasted in the next step instead.',
    fault: 'It begins with https://.',
  },
};
