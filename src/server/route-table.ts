import type { Config } from '../config/config.ts';
import { nameRoutes } from '../decision/builtin-roles.ts';
import { buildRouteTable, type RouteTable } from '../decision/routes.ts';

/** The built-in routes and the configured ones, which `config` has checked; `tenant-admin` holds the permissions of all of them. */
export function routeTable({ routes }: Pick<Config, 'routes'>): RouteTable {
  const result = buildRouteTable(routes);
  if (result.kind === 'error') throw new Error(`routes: ${result.message}`);
  nameRoutes(result.table.routes);
  return result.table;
}
