/** Runs a login step by step, with the code of logins. Each step reports its result and, if it fails, advice. */

import { reasonOf } from '../domain/errors.ts';
import { present } from '../domain/objects.ts';
import { type AccountState, accountState, statePerBind } from './account-state.ts';
import { adviceFor } from './advice.ts';
import { type BindOutcome, bindOutcome } from './bind-outcome.ts';
import type { LdapConnection } from './connection.ts';
import type { Deadline } from './deadline.ts';
import { bindService, type Directory, type DirectoryReader, personOf } from './directory.ts';
import type { LdapEntry } from './entry.ts';
import { type BoundEntry, boundUser, type FoundEntry, searchUser } from './find-user.ts';
import { outcomeFor, readBound } from './login.ts';
import type { LoginTestRequest, TestStep, TestStepName } from './model.ts';
import { identify, profileOf } from './person.ts';
import { TlsFault } from './socket.ts';
import { fillPattern, isExact, isName, type TypedName, typedName } from './user-name.ts';

/** Ends a test after a failed step was recorded. */
class Stopped extends Error {}

/** Ends with the first step that fails. Never rejects. */
export function runTestSteps(
  directory: Directory,
  request: LoginTestRequest,
  deadline: Deadline,
): Promise<readonly TestStep[]> {
  return new LoginTest(directory).run(request, deadline);
}

interface Login {
  readonly user: TypedName;
  /** Undefined = no bind as the person. */
  readonly password: string | undefined;
}

interface FoundPerson {
  readonly entry: LdapEntry;
  readonly reader: DirectoryReader;
}

interface Binding {
  readonly name: string;
  readonly password: string;
  /** Adds the state of the account to the outcome. */
  readonly explain: (outcome: BindOutcome) => BindOutcome;
}

const REFUSALS: Readonly<Record<string, string>> = {
  wrong_password: 'Check name and password; where names are bound by a pattern, check ldap.user-dn-pattern too.',
  unknown_user: 'Check the name and ldap.user-dn-pattern.',
  invalid_username: 'Correct ldap.user-dn-pattern: what it gives is no name that the server takes.',
  disabled: 'The account is disabled in the directory.',
  expired: 'The account has expired in the directory.',
  locked: 'The account is locked in the directory: unlock it there, or wait.',
  password_expired: 'The person must change the password in the directory.',
};

/** Returns the outcome of a bind that a login refuses for the state of the account, although the server accepts it. */
function withState(outcome: BindOutcome, state: AccountState | undefined): BindOutcome {
  if (outcome.kind !== 'proved') return outcome;
  if (state === 'disabled' || state === 'expired') return { kind: 'refused', reason: state };
  return state === 'password_expired' ? { kind: 'password_expired', reason: 'expired' } : outcome;
}

class LoginTest {
  readonly #directory: Directory;
  readonly #steps: TestStep[] = [];
  /** The current step, for failures of other code. */
  #next: TestStepName = 'connect';

  constructor(directory: Directory) {
    this.#directory = directory;
  }

  async run(request: LoginTestRequest, deadline: Deadline): Promise<readonly TestStep[]> {
    const opened: LdapConnection[] = [];
    const work = async (): Promise<void> => {
      const c = await this.#open(deadline);
      opened.push(c);
      await this.#runSteps(c, request);
    };
    try {
      await deadline.within(work());
    } catch (error) {
      if (!(error instanceof Stopped)) this.#failed(this.#next, error);
    } finally {
      for (const c of opened) c.close();
    }
    return this.#steps;
  }

  #done(step: TestStepName, detail: string, data?: TestStep['data'], advice?: string): void {
    this.#steps.push({ step, ok: true, detail, ...present({ data, advice }) });
  }

  #failed(step: TestStepName, error: unknown): void {
    const detail = typeof error === 'string' ? error : reasonOf(error);
    this.#steps.push({ step, ok: false, detail, advice: adviceFor(step, detail) });
  }

  #stop(step: TestStepName, detail: string, advice = adviceFor(step, detail)): never {
    this.#steps.push({ step, ok: false, detail, advice });
    throw new Stopped();
  }

  async #try<T>(step: TestStepName, work: () => Promise<T>): Promise<T> {
    this.#next = step;
    try {
      return await work();
    } catch (error) {
      if (error instanceof Stopped) throw error;
      this.#failed(error instanceof TlsFault ? 'tls' : step, error);
      throw new Stopped();
    }
  }

  async #open(deadline: Deadline): Promise<LdapConnection> {
    const { settings, servers } = this.#directory;
    let isBinding = false;
    const greet = async (c: LdapConnection): Promise<void> => {
      if (settings.serviceAccount === undefined) return;
      isBinding = true;
      await bindService(c, settings);
      this.#done('service_bind', `bound as ${settings.serviceAccount.dn}`);
    };
    const observe = (step: 'connect' | 'tls', detail: string, data?: TestStep['data']): void => {
      this.#next = step === 'connect' ? 'tls' : 'service_bind';
      this.#done(step, detail, data);
    };
    try {
      return await servers.open(deadline, greet, observe);
    } catch (error) {
      const step = isBinding ? 'service_bind' : error instanceof TlsFault ? 'tls' : 'connect';
      this.#failed(step, error);
      throw new Stopped();
    }
  }

  async #runSteps(c: LdapConnection, { username, password }: LoginTestRequest): Promise<void> {
    const { domains, userDnPattern: pattern } = this.#directory.settings;
    if (!isName(username))
      this.#stop('find_user', 'the name is empty or too long', 'Use a name of 1 to 256 characters.');
    const user = typedName(username, domains);
    if (!isExact(user.name)) {
      const detail = 'the name has leading or trailing blanks, or control characters';
      this.#stop('find_user', detail, 'Remove them from the name.');
    }
    const { entry, reader } =
      pattern === undefined
        ? await this.#findThenBind(c, { user, password })
        : await this.#bindThenFind(c, { user, password, pattern });
    await this.#readPerson(reader, entry, user);
  }

  async #findThenBind(c: LdapConnection, { user, password }: Login): Promise<FoundPerson> {
    const found = await this.#try('find_user', async () => {
      const reader = await this.#directory.readerOn(c);
      return { entry: this.#theOne(await searchUser(reader, user), user), reader };
    });
    this.#reportFound(found);
    const { entry, reader } = found;
    if (password !== undefined) {
      const explain = (outcome: BindOutcome) =>
        withState(outcomeFor(reader, entry, outcome), statePerBind(entry, reader.now()));
      await this.#bindUser(c, { name: entry.dn, password, explain });
    }
    return found;
  }

  async #bindThenFind(
    c: LdapConnection,
    { user, password, pattern }: Login & { readonly pattern: string },
  ): Promise<FoundPerson> {
    const name = fillPattern(pattern, user.name);
    if (name === undefined) {
      this.#stop(
        'user_bind',
        `this name does not fit into ${pattern}`,
        'Give the name alone, or set ldap.domain to the part that people add to it.',
      );
    }
    if (password !== undefined) await this.#bindUser(c, { name, password, explain: (outcome) => outcome });
    const person = await this.#try('find_user', async () => {
      if (password !== undefined) {
        const { found, reader } = await readBound(c, this.#directory, { name, password, outcome: 'proved' });
        return { entry: this.#theOne(found, user), reader };
      }
      const reader = await this.#directory.readerOn(c);
      return { entry: this.#theOne(await boundUser(reader, { name, authorization: undefined }), user), reader };
    });
    this.#reportFound(person);
    return person;
  }

  #reportFound({ entry: { dn }, reader }: FoundPerson): void {
    this.#done('find_user', `found ${dn}`, { dn, type: reader.traits.type });
  }

  #theOne(found: FoundEntry | BoundEntry, user: TypedName): LdapEntry {
    if (found.kind === 'one') return found.entry;
    if (found.kind === 'other_domain') return this.#stop('find_user', found.detail);
    return this.#stop(
      'find_user',
      found.kind === 'none' ? `no entry is found by ${user.typed}` : `several entries are found by ${user.typed}`,
    );
  }

  async #bindUser(c: LdapConnection, { name, password, explain }: Binding): Promise<void> {
    if (password === '') this.#stop('user_bind', 'an empty password is never sent', 'Give the password of the person.');
    const result = await this.#try('user_bind', () => c.bind(name, password));
    const outcome = explain(bindOutcome(result));
    const said = result.code === 0 ? '' : ` (code ${result.code}${result.text === '' ? '' : `: ${result.text}`})`;
    switch (outcome.kind) {
      case 'proved':
        return this.#done('user_bind', `bound as ${name}`);
      case 'password_expired':
        return this.#stop(
          'user_bind',
          `the password is right, but ${outcome.reason === 'expired' ? 'has expired' : 'must be changed first'}${said}`,
          REFUSALS['password_expired'],
        );
      case 'refused':
        return this.#stop(
          'user_bind',
          `the directory refuses ${name}: ${outcome.reason}${said}`,
          REFUSALS[outcome.reason] ?? 'Check the account in the directory.',
        );
      case 'fault':
        return this.#stop('user_bind', outcome.detail, adviceFor('service_bind', outcome.detail));
      default:
        return outcome satisfies never;
    }
  }

  async #readPerson(reader: DirectoryReader, entry: LdapEntry, user: TypedName): Promise<void> {
    const profile = profileOf(entry, reader, user.name);
    const identity = identify(entry, reader);
    if (identity.kind !== 'one') this.#stop('attributes', identity.detail);
    // With a pattern, the entry is read after the bind. A login refuses these states with every password.
    const refused = statePerBind(entry, reader.now());
    if (refused !== undefined)
      this.#stop(
        'attributes',
        `the entry says that the account is ${refused}, so a login is refused`,
        REFUSALS[refused],
      );
    const state = accountState(entry, reader.now());
    const email =
      profile.email === undefined
        ? ', without an e-mail address: correct ldap.attribute-mapping.email if there should be one'
        : '';
    this.#done('attributes', `${profile.username}${email}`, { id: identity.stableId, ...profile, state });
    const read = await this.#try('groups', async () => {
      await bindService(reader.c, reader.settings);
      return personOf(reader, entry, user.name);
    });
    if (read.kind === 'refused') this.#stop('attributes', read.detail);
    const { person } = read;
    this.#done('groups', `${person.groups.length} groups, direct and nested`, { groups: person.groups });
    const roles = person.roles.length === 0 ? 'no group gives a role' : person.roles.join(', ');
    const advice = 'Name one of the groups above in ldap.group-role-mapping, with the role that it gives.';
    this.#done('roles', roles, { roles: person.roles }, person.roles.length === 0 ? advice : undefined);
    this.#done('tenant', person.tenantId, { tenant_id: person.tenantId });
  }
}
