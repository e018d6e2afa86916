/** Spans around the credential cache's fills and around requests to directories. Without traces, nothing is wrapped. */

import type { CacheLoader } from '../credential-cache/ports.ts';
import type { Directories } from '../directory/model.ts';
import type { Tracing } from '../telemetry/tracing.ts';

export function tracedSource(source: CacheLoader, tracing: Tracing | undefined): CacheLoader {
  if (tracing === undefined) return source;
  const fill = <T>(what: string, load: () => Promise<T>): Promise<T> =>
    tracing.traced(`fill ${what}`, 'internal', {}, load);
  return {
    key: (digest, known) => fill('key', () => source.key(digest, known)),
    user: (id) => fill('user', () => source.user(id)),
    session: (id) => fill('session', () => source.session(id)),
    tenant: (id) => fill('tenant', () => source.tenant(id)),
    globalPolicies: () => fill('global policies', () => source.globalPolicies()),
    issuer: (value, known) => fill('issuer', () => source.issuer(value, known)),
    link: (issuerId, subject) => fill('link', () => source.link(issuerId, subject)),
  };
}

export function tracedDirectories(directories: Directories, tracing: Tracing | undefined): Directories {
  if (tracing === undefined) return directories;
  return {
    problems: directories.problems,
    authenticate: (username, password, elapsedMs) =>
      tracing.traced('ldap login', 'client', {}, async (span) => {
        const answer = await directories.authenticate(username, password, elapsedMs);
        span?.set({
          'postern.outcome': answer.kind,
          'postern.reason': answer.kind === 'proved' ? undefined : answer.reason,
          'postern.directory': answer.kind === 'proved' ? answer.person.directory : answer.directory,
        });
        return answer;
      }),
    lookup: (directory, stableId) =>
      tracing.traced('ldap lookup', 'client', { 'postern.directory': directory }, async (span) => {
        const answer = await directories.lookup(directory, stableId);
        span?.set({ 'postern.outcome': answer.kind });
        return answer;
      }),
    test: (question) =>
      tracing.traced('ldap test', 'client', { 'postern.directory': question.directory }, () =>
        directories.test(question),
      ),
  };
}
