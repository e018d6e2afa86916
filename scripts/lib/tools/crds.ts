/** The custom resource definitions of what the chart makes resources for, as schemas that refuse unknown members. */

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { cached, must, type ToolSearch } from './cache.ts';

interface Source {
  readonly module: string;
  readonly version: string;
  /** Files or folders inside the module. */
  readonly paths: readonly string[];
}

export const CRD_SOURCES: readonly Source[] = [
  { module: 'sigs.k8s.io/gateway-api', version: 'v1.7.0', paths: ['config/crd/standard'] },
  { module: 'istio.io/api', version: 'v1.31.1', paths: ['kubernetes/customresourcedefinitions.gen.yaml'] },
  {
    module: 'github.com/envoyproxy/gateway',
    version: 'v1.9.1',
    paths: ['charts/gateway-helm/charts/crds/crds/generated'],
  },
  {
    module: 'github.com/cert-manager/cert-manager',
    version: 'v1.21.2',
    paths: ['deploy/crds/cert-manager.io_certificates.yaml'],
  },
  {
    module: 'github.com/prometheus-operator/prometheus-operator',
    version: 'v0.85.0',
    paths: [
      'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
      'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
    ],
  },
];
const CACHE = `crds-${CRD_SOURCES.map(({ version }) => version.slice(1)).join('-')}`;

/** Modules that Go leaves packed are unpacked here for a moment. */
const UNPACKED = '.modules';

/** The folder with one JSON Schema for each kind and version: `<group>_<version>_<kind>.json`. */
export function findCrds(): Promise<ToolSearch> {
  const names = CRD_SOURCES.map(({ module, version }) => `${module}@${version}`);
  const how = `install Go, which runs "go mod download ${names.join(' ')}"`;
  return cached(CACHE, 'The custom resource definitions', how, async (folder) => {
    for (const source of CRD_SOURCES) {
      const module = await moduleFolder(source, folder);
      for (const path of source.paths) {
        for (const file of await yamlFiles(join(module, path)))
          await writeSchemas(await readFile(file, 'utf8'), folder);
      }
    }
    await rm(join(folder, UNPACKED), { recursive: true, force: true });
  });
}

/** The definitions of these kinds as a cluster gets them, with their rules in CEL. Throws if Go cannot have the modules. */
export async function crdObjects(names: readonly string[]): Promise<readonly object[]> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-crds-'));
  try {
    const found: object[] = [];
    for (const source of CRD_SOURCES) {
      const module = await moduleFolder(source, folder);
      for (const path of source.paths) {
        for (const file of await yamlFiles(join(module, path))) {
          const text = await readFile(file, 'utf8');
          if (!names.some((name) => text.includes(`name: ${name}\n`))) continue;
          for (const doc of parseAllDocuments(text)) {
            const one: { readonly metadata: { readonly name: string } } | null = doc.toJS();
            if (one !== null && names.includes(one.metadata.name)) found.push(one);
          }
        }
      }
    }
    return found;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Go refuses to unpack a module for a newer Go than it is, and leaves its archive all the same. */
async function moduleFolder({ module, version }: Source, folder: string): Promise<string> {
  const told = await must('go', ['mod', 'download', '-json', `${module}@${version}`], { cwd: folder }).catch(
    (error: unknown) =>
      error instanceof Error && error.message.trimStart().startsWith('{') ? error.message : Promise.reject(error),
  );
  const answer: unknown = JSON.parse(told);
  const member = (name: string): string => {
    const value =
      typeof answer === 'object' && answer !== null ? Object.entries(answer).find(([key]) => key === name)?.[1] : '';
    return typeof value === 'string' ? value : '';
  };
  if (member('Dir') !== '') return member('Dir');
  if (member('Zip') === '') throw new Error(member('Error'));
  const into = join(folder, UNPACKED);
  await must('python3', ['-m', 'zipfile', '-e', member('Zip'), into]);
  return join(into, `${module}@${version}`);
}

async function yamlFiles(path: string): Promise<string[]> {
  if (path.endsWith('.yaml')) return [path];
  return (await readdir(path)).filter((name) => name.endsWith('.yaml')).map((name) => join(path, name));
}

interface Definition {
  readonly kind: string;
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: unknown } }[];
  };
}

async function writeSchemas(text: string, folder: string): Promise<void> {
  for (const doc of parseAllDocuments(text)) {
    const definition: Definition | null = doc.toJS();
    if (definition?.kind !== 'CustomResourceDefinition') continue;
    const { group, names, versions } = definition.spec;
    for (const { name, schema } of versions) {
      const file = join(folder, `${group}_${name}_${names.kind}.json`);
      await writeFile(file, JSON.stringify(strict(schema.openAPIV3Schema, true)));
    }
  }
}

/** An API server drops unknown members in silence; here they are refused. Descriptions and rules in CEL go. */
export function strict(schema: unknown, isRoot = false): unknown {
  if (Array.isArray(schema)) return schema.map((one) => strict(one));
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([name]) => name !== 'description' && name !== 'format' && name !== 'example' && !name.startsWith('x-kubernetes-'),
  );
  const own = new Map<string, unknown>(Object.entries(schema));
  const properties = own.get('properties');
  const result: Record<string, unknown> = Object.fromEntries(
    kept.map(([name, value]) => [name, strictMember(name, value)]),
  );
  if (own.get('x-kubernetes-int-or-string') === true) {
    delete result['type'];
    result['type'] = ['integer', 'string'];
  }
  const open = own.get('x-kubernetes-preserve-unknown-fields') === true || own.has('additionalProperties');
  if (properties !== undefined && !open && own.get('type') === 'object') result['additionalProperties'] = false;
  if (isRoot)
    result['properties'] = { apiVersion: {}, kind: {}, ...asMap(result['properties']), metadata: { type: 'object' } };
  return result;
}

function strictMember(name: string, value: unknown): unknown {
  if (name === 'properties') return strictMembers(value);
  // Go's way to say that the case does not matter, in JavaScript's.
  if (name === 'pattern') return String(value).replace(/^\^?\(\?i\)(.*)$/s, '(?i:^$1)');
  return name === 'default' || name === 'enum' ? value : strict(value);
}

function strictMembers(members: unknown): unknown {
  return Object.fromEntries(Object.entries(asMap(members)).map(([name, member]) => [name, strict(member)]));
}

function asMap(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
