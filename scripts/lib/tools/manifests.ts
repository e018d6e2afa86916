/**
 * Validates manifests with the strict schemas of Kubernetes and of custom resources. Nothing passes for being empty or
 * unknown.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parseAllDocuments } from 'yaml';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [member: string]: unknown;
}

export interface Flaw {
  readonly object: string;
  readonly message: string;
}

export interface ManifestValidator {
  /** Every flaw of every object; a text without objects is a flaw as well. */
  validate(text: string): Promise<readonly Flaw[]>;
}

/** Reads the objects of a YAML text. Throws at the first that is not one. */
export function manifestsOf(text: string): readonly Manifest[] {
  return parseAllDocuments(text).flatMap((doc) => {
    if (doc.errors[0] !== undefined) throw doc.errors[0];
    const value: unknown = doc.toJS({ maxAliasCount: 1000 });
    if (value === null || value === undefined) return [];
    if (!isManifest(value)) throw new Error(`not an object of Kubernetes: ${JSON.stringify(value).slice(0, 200)}`);
    return [value];
  });
}

function isManifest(value: unknown): value is Manifest {
  if (typeof value !== 'object' || value === null) return false;
  const { apiVersion, kind, metadata } = { apiVersion: undefined, kind: undefined, metadata: undefined, ...value };
  return (
    typeof apiVersion === 'string' && typeof kind === 'string' && typeof metadata === 'object' && metadata !== null
  );
}

/**
 * @param kubernetes folder of Kubernetes' own strict schemas
 * @param crds folder of the custom resources' schemas
 */
export function createManifestValidator(kubernetes: string, crds: string): ManifestValidator {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false, logger: false });
  const known = new Map<string, Promise<ValidateFunction>>();
  let definitions: Promise<void> | undefined;

  const readJson = async (path: string): Promise<object> => JSON.parse(await readFile(path, 'utf8'));
  const load = async ({ apiVersion, kind }: Manifest): Promise<ValidateFunction> => {
    const [group = '', version = ''] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion];
    const custom = await readJson(join(crds, `${group}_${version}_${kind}.json`)).catch(() => undefined);
    if (custom !== undefined) return ajv.compile(custom);
    definitions ??= readJson(join(kubernetes, '_definitions.json')).then((schema) => {
      ajv.addSchema(schema, '_definitions.json');
    });
    await definitions;
    const prefix = group === '' ? '' : `${group.split('.')[0]}-`;
    return ajv.compile(await readJson(join(kubernetes, `${kind.toLowerCase()}-${prefix}${version}.json`)));
  };

  return {
    validate: async (text) => {
      const manifests = manifestsOf(text);
      if (manifests.length === 0) return [{ object: '', message: 'there is no object in it' }];
      const flaws: Flaw[] = [];
      for (const manifest of manifests) {
        const object = `${manifest.kind} ${manifest.metadata.name}`;
        const type = `${manifest.apiVersion} ${manifest.kind}`;
        const found = known.get(type) ?? load(manifest);
        known.set(type, found);
        try {
          const check = await found;
          if (check(manifest)) continue;
          flaws.push(
            ...(check.errors ?? []).map((one) => ({
              object,
              message: `${one.instancePath} ${one.message} ${JSON.stringify(one.params)}`,
            })),
          );
        } catch (error) {
          flaws.push({
            object,
            message: `no schema of ${type}: ${error instanceof Error ? error.message : String(error)}`,
          });
        }
      }
      return flaws;
    },
  };
}
