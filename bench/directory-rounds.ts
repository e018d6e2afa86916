/**
 * Binds by ldapts alone, and logins by Postern's directory room, in a process of its own: each task that its parent
 * sends is timed.
 */

import { readFileSync } from 'node:fs';
import { Client } from 'ldapts';
import { openDirectories } from '../src/directory/directories.ts';
import { PASSWORD, type Person, uidDn } from '../test/directory/servers/people.ts';
import type { DirectoryPlace } from '../test/directory/servers/server.ts';
import { directoryUrl, settingsFor } from '../test/directory/settings.ts';
import { atOnce } from './directory-people.ts';
import { quantile } from './stack.ts';

export type DirectoryWork = 'bind' | 'pattern' | 'flat' | 'search' | 'plainBind' | 'plainSearch';

export interface DirectoryTask {
  readonly work: DirectoryWork;
  readonly count: number;
  readonly inFlight: number;
}

const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3';

const place = JSON.parse(process.argv[2] ?? '') as DirectoryPlace;
const settings = settingsFor(place);
const ca = readFileSync(place.caFile, 'utf8');
const searching = openDirectories([settings]);
const searchingPlain = openDirectories([settingsFor(place, { urls: [directoryUrl(place.url)] })]);
const flat = openDirectories([{ ...settings, nestedGroups: false }]);
const byPattern = openDirectories([
  {
    ...settings,
    userDnPattern: `uid={0},${place.people}`,
    groupSearchBase: undefined,
    groupSearchFilter: undefined,
    nestedGroups: false,
  },
]);

const WORK: Readonly<Record<DirectoryWork, (one: Person) => Promise<void>>> = {
  bind: (one) => bindAlone(new Client({ url: place.secureUrl, tlsOptions: { ca } }), one),
  plainBind: (one) => bindAlone(new Client({ url: place.url }), one),
  async plainSearch({ login }) {
    proved((await searchingPlain.authenticate(login, PASSWORD)).kind);
  },
  async pattern({ login }) {
    proved((await byPattern.authenticate(login, PASSWORD)).kind);
  },
  async flat({ login }) {
    proved((await flat.authenticate(login, PASSWORD)).kind);
  },
  async search({ login }) {
    proved((await searching.authenticate(login, PASSWORD)).kind);
  },
};

async function bindAlone(client: Client, one: Person): Promise<void> {
  await client.bind(uidDn(place, one), PASSWORD);
  await client.exop(WHO_AM_I);
  await client.unbind();
}

function proved(kind: string): void {
  if (kind !== 'proved') throw new Error(`a directory login was ${kind}`);
}

process.on('message', async ({ work, count, inFlight }: DirectoryTask) => {
  const latenciesMs: number[] = [];
  let begun = 0;
  const started = performance.now();
  const client = async (one: Person): Promise<void> => {
    while (begun < count) {
      begun++;
      const from = performance.now();
      await WORK[work](one);
      latenciesMs.push(performance.now() - from);
    }
  };
  await Promise.all(atOnce(inFlight).map(client));
  const perSecond = (count / (performance.now() - started)) * 1000;
  process.send?.({ perSecond, p50Ms: quantile(latenciesMs, 0.5), p99Ms: quantile(latenciesMs, 0.99) });
});
