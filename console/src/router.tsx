/**
 * The addresses of the console. The filters of a list and the open drawer are in the address, so that a link can be
 * shared. Each screen is loaded when it is first opened.
 */

import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  defaultStringifySearch,
  lazyRouteComponent,
  Outlet,
  redirect,
  retainSearchParams,
} from '@tanstack/react-router';
import { noteSignIn, wasSignedIn } from './api/client.ts';
import { lastTenant } from './api/last-tenant.ts';
import { queries } from './api/queries.ts';
import { meQuery } from './api/session.ts';
import { accessSearch } from './screens/access/search.ts';
import { auditSearch } from './screens/audit/search.ts';
import { budgetsSearch } from './screens/budgets/search.ts';
import { connectSearch } from './screens/connect/search.ts';
import { explainSearch } from './screens/explain/search.ts';
import { issuerSearch, newIssuerSearch } from './screens/issuer/search.ts';
import { issuersSearch } from './screens/issuers/search.ts';
import { keysSearch } from './screens/keys/search.ts';
import { overviewSearch } from './screens/overview/search.ts';
import { policiesSearch } from './screens/policies/search.ts';
import { newPolicySearch } from './screens/policy/search.ts';
import { importSearch, pricesSearch } from './screens/prices/search.ts';
import { newRoleSearch } from './screens/role/search.ts';
import { rolesSearch } from './screens/roles/search.ts';
import { HOME, insidePath } from './screens/sign-in/next.ts';
import { signInSearch } from './screens/sign-in/search.ts';
import { spendSearch } from './screens/spend/search.ts';
import { tenantsSearch } from './screens/tenants/search.ts';
import { trialSearch } from './screens/trial/search.ts';
import { usageSearch } from './screens/usage/search.ts';
import { userSearch } from './screens/user/search.ts';
import { usersSearch } from './screens/users/search.ts';
import { webhookSearch, webhooksSearch } from './screens/webhooks/search.ts';
import { LoadError, Missing } from './shell/dead-ends.tsx';
import type { GuardedScreen } from './shell/needs.ts';
import { type Given, text, withoutSecrets } from './shell/search.ts';

const root = createRootRouteWithContext()({ component: Outlet, notFoundComponent: Missing, errorComponent: LoadError });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: signInSearch,
  component: lazyRouteComponent(() => import('./screens/sign-in/sign-in.tsx'), 'SignIn'),
});

/** The end of a sign-in at a provider. The browser has the cookie of the session. */
const signedIn = createRoute({
  getParentRoute: () => root,
  path: '/signed-in',
  validateSearch: (given: Given): { next?: string } => text(given, 'next'),
  beforeLoad: async ({ search }) => {
    noteSignIn();
    const href = insidePath(search.next);
    if (href !== HOME) throw redirect({ href, replace: true });
    // Without a session, the first screen leads to the sign-in page.
    const tenant = await lastTenant().catch(() => undefined);
    throw redirect({ to: '/', search: { tenant }, replace: true });
  },
});

const setPassword = createRoute({
  getParentRoute: () => root,
  path: '/set-password',
  component: lazyRouteComponent(() => import('./screens/set-password/set-password.tsx'), 'SetPassword'),
});

/** All that needs a session. The tenant is kept from screen to screen. */
const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  validateSearch: (given: Given): { tenant?: string } => text(given, 'tenant'),
  search: { middlewares: [retainSearchParams(['tenant'])] },
  beforeLoad: ({ location }) => {
    if (!wasSignedIn()) {
      throw redirect({ to: '/sign-in', search: location.href === '/' ? {} : { next: location.href } });
    }
    // The shell waits for it, with its frame on the screen.
    void queries.prefetchQuery(meQuery);
  },
  component: lazyRouteComponent(() => import('./shell/shell.tsx'), 'Shell'),
  errorComponent: LoadError,
});

/** Returns the members of a route whose screen needs a permission. */
function guarded(screen: GuardedScreen) {
  return { getParentRoute: () => inside, staticData: { guarded: screen } };
}

const overview = createRoute({
  getParentRoute: () => inside,
  path: '/',
  validateSearch: overviewSearch,
  component: lazyRouteComponent(() => import('./screens/overview/overview.tsx'), 'Overview'),
});

const keys = createRoute({
  getParentRoute: () => inside,
  path: '/keys',
  validateSearch: keysSearch,
  component: lazyRouteComponent(() => import('./screens/keys/keys.tsx'), 'Keys'),
});

const connect = createRoute({
  getParentRoute: () => inside,
  path: '/connect',
  validateSearch: connectSearch,
  component: lazyRouteComponent(() => import('./screens/connect/connect.tsx'), 'Connect'),
});

const users = createRoute({
  ...guarded('users'),
  path: '/users',
  validateSearch: usersSearch,
  component: lazyRouteComponent(() => import('./screens/users/users.tsx'), 'Users'),
});

const user = createRoute({
  ...guarded('users'),
  path: '/users/$id',
  validateSearch: userSearch,
  component: lazyRouteComponent(() => import('./screens/user/user.tsx'), 'User'),
});

const roles = createRoute({
  ...guarded('roles'),
  path: '/roles',
  validateSearch: rolesSearch,
  component: lazyRouteComponent(() => import('./screens/roles/roles.tsx'), 'Roles'),
});

const role = createRoute({
  ...guarded('roles'),
  path: '/roles/$name',
  component: lazyRouteComponent(() => import('./screens/role/role.tsx'), 'Role'),
});

const newRole = createRoute({
  ...guarded('roles'),
  path: '/new-role',
  validateSearch: newRoleSearch,
  component: lazyRouteComponent(() => import('./screens/role/new-role.tsx'), 'NewRole'),
});

const policies = createRoute({
  ...guarded('policies'),
  path: '/policies',
  validateSearch: policiesSearch,
  component: lazyRouteComponent(() => import('./screens/policies/policies.tsx'), 'Policies'),
});

const policy = createRoute({
  ...guarded('policies'),
  path: '/policies/$name',
  component: lazyRouteComponent(() => import('./screens/policy/policy.tsx'), 'Policy'),
});

const newPolicy = createRoute({
  ...guarded('policies'),
  path: '/new-policy',
  validateSearch: newPolicySearch,
  component: lazyRouteComponent(() => import('./screens/policy/new-policy.tsx'), 'NewPolicy'),
});

const issuers = createRoute({
  ...guarded('issuers'),
  path: '/issuers',
  validateSearch: issuersSearch,
  component: lazyRouteComponent(() => import('./screens/issuers/issuers.tsx'), 'Issuers'),
});

const issuer = createRoute({
  ...guarded('issuers'),
  path: '/issuers/$id',
  validateSearch: issuerSearch,
  component: lazyRouteComponent(() => import('./screens/issuer/issuer.tsx'), 'Issuer'),
});

const newIssuer = createRoute({
  ...guarded('issuers'),
  path: '/new-issuer',
  validateSearch: newIssuerSearch,
  component: lazyRouteComponent(() => import('./screens/issuer/new-issuer.tsx'), 'NewIssuer'),
});

const explain = createRoute({
  getParentRoute: () => inside,
  path: '/explain',
  validateSearch: explainSearch,
  component: lazyRouteComponent(() => import('./screens/explain/explain.tsx'), 'Explain'),
});

const access = createRoute({
  ...guarded('access'),
  path: '/access',
  validateSearch: accessSearch,
  component: lazyRouteComponent(() => import('./screens/access/access.tsx'), 'Access'),
});

const trial = createRoute({
  ...guarded('trial'),
  path: '/trial',
  validateSearch: trialSearch,
  component: lazyRouteComponent(() => import('./screens/trial/trial.tsx'), 'TrialScreen'),
});

const usage = createRoute({
  ...guarded('usage'),
  path: '/usage',
  validateSearch: usageSearch,
  component: lazyRouteComponent(() => import('./screens/usage/usage.tsx'), 'Usage'),
});

const spend = createRoute({
  ...guarded('spend'),
  path: '/spend',
  validateSearch: spendSearch,
  component: lazyRouteComponent(() => import('./screens/spend/spend.tsx'), 'Spend'),
});

const budgets = createRoute({
  ...guarded('budgets'),
  path: '/budgets',
  validateSearch: budgetsSearch,
  component: lazyRouteComponent(() => import('./screens/budgets/budgets.tsx'), 'Budgets'),
});

const budget = createRoute({
  ...guarded('budgets'),
  path: '/budgets/$id',
  component: lazyRouteComponent(() => import('./screens/budget/budget.tsx'), 'Budget'),
});

const newBudget = createRoute({
  ...guarded('budgets'),
  path: '/new-budget',
  component: lazyRouteComponent(() => import('./screens/budget/new-budget.tsx'), 'NewBudget'),
});

const prices = createRoute({
  ...guarded('prices'),
  path: '/prices',
  validateSearch: pricesSearch,
  component: lazyRouteComponent(() => import('./screens/prices/prices.tsx'), 'Prices'),
});

const importPrices = createRoute({
  ...guarded('prices'),
  path: '/import-prices',
  validateSearch: importSearch,
  component: lazyRouteComponent(() => import('./screens/prices/import-prices.tsx'), 'ImportPrices'),
});

const webhooks = createRoute({
  ...guarded('webhooks'),
  path: '/webhooks',
  validateSearch: webhooksSearch,
  component: lazyRouteComponent(() => import('./screens/webhooks/webhooks.tsx'), 'Webhooks'),
});

const webhook = createRoute({
  ...guarded('webhooks'),
  path: '/webhooks/$id',
  validateSearch: webhookSearch,
  component: lazyRouteComponent(() => import('./screens/webhook/webhook.tsx'), 'Webhook'),
});

const audit = createRoute({
  ...guarded('audit'),
  path: '/audit',
  validateSearch: auditSearch,
  component: lazyRouteComponent(() => import('./screens/audit/audit.tsx'), 'Audit'),
});

const tenants = createRoute({
  ...guarded('tenants'),
  path: '/tenants',
  validateSearch: tenantsSearch,
  component: lazyRouteComponent(() => import('./screens/tenants/tenants.tsx'), 'Tenants'),
});

const onboarding = createRoute({
  ...guarded('tenants'),
  path: '/onboarding',
  component: lazyRouteComponent(() => import('./screens/onboarding/onboarding.tsx'), 'Onboarding'),
});

const directory = createRoute({
  ...guarded('directory'),
  path: '/directory',
  component: lazyRouteComponent(() => import('./screens/directory/directory.tsx'), 'Directory'),
});

const account = createRoute({
  getParentRoute: () => inside,
  path: '/account',
  component: lazyRouteComponent(() => import('./screens/account/account.tsx'), 'Account'),
});

/** An address that no screen has. The rail stays, so that there is a way on. */
const missing = createRoute({ getParentRoute: () => inside, path: '$', component: Missing });

const screens = [
  overview,
  keys,
  connect,
  users,
  user,
  roles,
  role,
  newRole,
  policies,
  policy,
  newPolicy,
  issuers,
  issuer,
  newIssuer,
  explain,
  access,
  trial,
  usage,
  spend,
  budgets,
  budget,
  newBudget,
  prices,
  importPrices,
  audit,
  webhooks,
  webhook,
  tenants,
  onboarding,
  directory,
  account,
  missing,
] as const;

export const router = createRouter({
  routeTree: root.addChildren([signIn, signedIn, setPassword, inside.addChildren(screens)]),
  basepath: '/console',
  stringifySearch: (search) => defaultStringifySearch(withoutSecrets(search)),
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingMs: 300,
  defaultErrorComponent: LoadError,
  // No dialog, secret or list of one resource stays on the page of another one.
  defaultRemountDeps: ({ params }) => params,
});

declare module '@tanstack/react-router' {
  interface Register {
    readonly router: typeof router;
  }
}
