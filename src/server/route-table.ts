import type { Config } from '../config/config.ts';
import { buildRouteTable, type RouteTable } from '../decision/routes.ts';

/** Compiles the built-in routes and the configured ones, which `config` has checked. */
export function routeTable({ routes }: Pick<Config, 'routes'>): RouteTable {
  const result = buildRouteTable(routes);
  if (result.kind === 'error') throw new Error(`routes: ${result.message}`);
  return result.table;
}
