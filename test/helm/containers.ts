/** Containers of rendered pods, run without a cluster: their own command, with the files that a kubelet would mount. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Manifest } from '../../scripts/lib/tools/manifests.ts';
import { ADMIN, SECRET_KEY } from '../server/support/client.ts';
import type { Addresses, Running, Stand } from '../server/support/postern.ts';
import { freeAddress } from '../support/ports.ts';
import { at, containersOf, listAt, only, textAt } from './objects.ts';

export async function freeAddresses(): Promise<Addresses> {
  return { http: await freeAddress(), grpc: await freeAddress(), admin: await freeAddress() };
}

export interface Container {
  readonly stand: Stand;
  readonly databaseUrl: string;
  readonly manifests: readonly Manifest[];
  readonly pod: unknown;
  /** Name of one of the pod's containers. */
  readonly name: string;
  /** Where it listens, in place of the rendered ports. */
  readonly free: Addresses;
}

/** The container's own command, with the files that a kubelet would mount and addresses that are free here. */
export async function startContainer({ stand, databaseUrl, manifests, pod, name, free }: Container): Promise<Running> {
  const container = containersOf(pod).find((one) => at(one, 'name') === name);
  const folder = join(stand.folder, `${name}-${free.admin.split(':')[1]}`);
  await mkdir(folder);
  await writeFile(join(folder, 'database-url'), `${databaseUrl}\n`);
  await writeFile(join(folder, 'secret-key'), SECRET_KEY);
  await writeFile(join(folder, 'bootstrap-password'), ADMIN.password);
  const [item] = listAt(
    listAt(pod, 'volumes').find((volume) => at(volume, 'name') === 'config'),
    'configMap',
    'items',
  );
  const config = textAt(only(manifests, 'ConfigMap', 'postern'), 'data', textAt(item, 'key'))
    .replace('0.0.0.0:8080', free.http)
    .replace('0.0.0.0:9191', free.grpc)
    .replace('0.0.0.0:9090', free.admin)
    .replace('notice: 5s', 'notice: 1s')
    .replace('unix:/run/postern/', `unix:${stand.folder}/`);
  await writeFile(join(folder, 'postern.yaml'), config);
  const env: Record<string, string> = { POSTERN_HTTP_LISTEN: '', POSTERN_GRPC_LISTEN: '', POSTERN_ADMIN_LISTEN: '' };
  for (const variable of listAt(container, 'env')) {
    env[textAt(variable, 'name')] = textAt(variable, 'value').replace('/run/secrets/postern', folder);
  }
  const args = listAt(container, 'args').map((arg) => String(arg).replace('/etc/postern', folder));
  return stand.start(args, env);
}

/**
 * Ends a pod as the kubelet does: first its containers, each after its preStop, then its sidecar containers, the last
 * started first.
 * @returns the names of the containers in the order of their ends
 */
export async function endPod(
  pod: unknown,
  processes: ReadonlyMap<string, { stop(): Promise<unknown> }>,
): Promise<readonly string[]> {
  const ended: string[] = [];
  const end = async (container: unknown): Promise<void> => {
    await sleep(1_000 * Number(at(container, 'lifecycle', 'preStop', 'sleep', 'seconds') ?? 0));
    await processes.get(textAt(container, 'name'))?.stop();
    ended.push(textAt(container, 'name'));
  };
  await Promise.all(listAt(pod, 'containers').map(end));
  const sidecars = listAt(pod, 'initContainers').filter((one) => at(one, 'restartPolicy') === 'Always');
  for (const sidecar of sidecars.toReversed()) await end(sidecar);
  return ended;
}
