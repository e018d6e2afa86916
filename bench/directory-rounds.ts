/** Binds by ldapts alone, and logins by Postern's directory room, in a process of its own: each task that its parent sends is timed. */

import { readFileSync } from 'node:fs';
import { Client } from 'ldapts';
import { openDirectories } from '../src/directory/directories.ts';
import { PASSWORD, PEOPLE, uidDn } from '../test/directory/servers/people.ts';
import type { DirectoryPlace } from '../test/directory/servers/server.ts';
import { directoryUrl, settingsFor } from '../test/directory/settings.ts';

export type DirectoryWork = 'bind' | 'pattern' | 'flat' | 'search' | 'plainBind' | 'plainSearch';

export interface DirectoryTask {
  readonly work: DirectoryWork;
  readonly count: number;
  readonly inFlight: number;
}

const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3';

const place = JSON.parse(process.argv[2] ?? '') as DirectoryPlace;
const { alice } = PEOPLE;
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

const WORK: Readonly<Record<DirectoryWork, () => Promise<void>>> = {
  bind: () => bindAlone(new Client({ url: place.secureUrl, tlsOptions: { ca } })),
  plainBind: () => bindAlone(new Client({ url: place.url })),
  async plainSearch() {
    proved((await searchingPlain.authenticate(alice.login, PASSWORD)).kind);
  },
  async pattern() {
    proved((await byPattern.authenticate(alice.login, PASSWORD)).kind);
  },
  async flat() {
    proved((await flat.authenticate(alice.login, PASSWORD)).kind);
  },
  async search() {
    proved((await searching.authenticate(alice.login, PASSWORD)).kind);
  },
};

async function bindAlone(client: Client): Promise<void> {
  await client.bind(uidDn(place, alice), PASSWORD);
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
  const client = async (): Promise<void> => {
    while (begun < count) {
      begun++;
      const from = performance.now();
      await WORK[work]();
      latenciesMs.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  process.send?.({ perSecond: (count / (performance.now() - started)) * 1000, latenciesMs });
});
