/**
 * The addresses of the console. What a list shows and which drawer is open is in the address, so that it can be sent to somebody.
 * Every screen is loaded when it is first opened.
 */

import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
  retainSearchParams,
} from '@tanstack/react-router';
import { ProblemError } from '../../client/index.ts';
import { client } from './api/client.ts';
import { queries } from './api/queries.ts';
import { meQuery } from './api/session.ts';
import { keysSearch } from './screens/keys/search.ts';
import { signInSearch } from './screens/sign-in/search.ts';
import { LoadError, Missing } from './shell/dead-ends.tsx';
import { type Given, text } from './shell/search.ts';

const root = createRootRouteWithContext()({ component: Outlet, notFoundComponent: Missing, errorComponent: LoadError });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: signInSearch,
  component: lazyRouteComponent(() => import('./screens/sign-in/sign-in.tsx'), 'SignIn'),
});

/** All that needs a session. The tenant is kept from screen to screen. */
const inside = createRoute({
  getParentRoute: () => root,
  id: 'inside',
  validateSearch: (given: Given): { tenant?: string } => text(given, 'tenant'),
  search: { middlewares: [retainSearchParams(['tenant'])] },
  beforeLoad: async ({ location }) => {
    if ((await client.resume()) && (await isKnown())) return;
    throw redirect({ to: '/sign-in', search: location.pathname === '/' ? {} : { next: location.href } });
  },
  component: lazyRouteComponent(() => import('./shell/shell.tsx'), 'Shell'),
  errorComponent: LoadError,
});

/** A session that ended elsewhere leads to the door; every other failure is an error of the page. */
async function isKnown(): Promise<boolean> {
  try {
    await queries.ensureQueryData(meQuery);
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.status === 401) return false;
    throw error;
  }
}

const overview = createRoute({
  getParentRoute: () => inside,
  path: '/',
  component: lazyRouteComponent(() => import('./screens/overview/overview.tsx'), 'Overview'),
});

const account = createRoute({
  getParentRoute: () => inside,
  path: '/account',
  component: lazyRouteComponent(() => import('./screens/account/account.tsx'), 'Account'),
});

const keys = createRoute({
  getParentRoute: () => inside,
  path: '/keys',
  validateSearch: keysSearch,
  component: lazyRouteComponent(() => import('./screens/keys/keys.tsx'), 'Keys'),
});

export const router = createRouter({
  routeTree: root.addChildren([signIn, inside.addChildren([overview, keys, account])]),
  basepath: '/console',
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultPendingMs: 300,
});

declare module '@tanstack/react-router' {
  interface Register {
    readonly router: typeof router;
  }
}
