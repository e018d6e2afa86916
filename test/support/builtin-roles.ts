import { BuiltinRoles } from '../../src/decision/builtin-roles.ts';
import { BUILTIN_ROUTES } from '../../src/decision/routes.ts';

/** The built-in roles of a process without configured routes. */
export const builtinRoles = new BuiltinRoles(BUILTIN_ROUTES);
