/**
 * The image's bill of materials (CycloneDX), by `npm sbom`. npm's `--omit=dev` also leaves out production dependencies
 * that a development dependency shares, and `--omit=optional` the native part of argon2. So npm lists everything in the
 * lock file, and the bill keeps exactly the packages whose files are in the image: those below node_modules, and those
 * that the console's build compiled into it.
 */

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ROOT, tool } from './tool.ts';

interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly scope?: string;
  readonly purl?: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

export interface Bill {
  readonly bomFormat: string;
  readonly specVersion: string;
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp: string; readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

interface Package {
  readonly name: string;
  readonly version: string;
}

/**
 * Members that describe npm's view of the whole project: where a package is installed, and that only development needs
 * it.
 */
const NPM_PROPERTIES = /^cdx:npm:package:(?:development|path)$/;
const FONTS = 'node_modules/@fontsource-variable';

/**
 * @param app the image's folder with node_modules and console/dist
 * @param madeAt in place of the time at which npm ran, so that two bills of one commit have the same bytes
 * @throws Error if the image holds a package or a font that the lock file does not list
 */
export async function billOfMaterials(app: string, madeAt: Date): Promise<Bill> {
  const args = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const all: Bill = JSON.parse(await tool('npm', args, ROOT));
  const own: Package = JSON.parse(await readFile(join(app, 'package.json'), 'utf8'));
  const inside = new Set((await packagesIn(app)).map(refOf));
  const components = all.components.filter((component) => inside.has(refOf(component)));
  const listed = new Set(components.map(refOf));
  const unlisted = [...inside].filter((ref) => !listed.has(ref));
  if (unlisted.length > 0)
    throw new Error(`package-lock.json does not list ${unlisted.join(', ')}, which the image holds`);
  const kept = new Set([all.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])]);
  const bill: Bill = {
    ...all,
    // npm names the folder that it runs in.
    metadata: {
      ...all.metadata,
      timestamp: madeAt.toISOString(),
      component: { ...all.metadata.component, name: own.name },
    },
    components: components.map((component) => ({
      ...component,
      scope: 'required',
      properties: (component.properties ?? []).filter(({ name }) => !NPM_PROPERTIES.test(name)),
    })),
    dependencies: all.dependencies
      .filter(({ ref }) => kept.has(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((needed) => kept.has(needed)) })),
  };
  return { ...bill, serialNumber: serialOf({ ...bill, serialNumber: '' }) };
}

/** A UUID of version 8 (RFC 9562) that the content determines. */
function serialOf(bill: Bill): string {
  const digits = createHash('sha256').update(JSON.stringify(bill)).digest('hex');
  const [a, b, c, d, e] = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(13, 16),
    digits.slice(17, 20),
    digits.slice(20, 32),
  ];
  return `urn:uuid:${a}-${b}-8${c}-a${d}-${e}`;
}

const refOf = ({ name, version }: Package): string => `${name}@${version}`;

/** Every package whose files are in the image. */
export async function packagesIn(app: string): Promise<Package[]> {
  const dist = join(app, 'console/dist');
  const bundled: Package[] = JSON.parse(await readFile(join(dist, 'licenses.json'), 'utf8'));
  return [...(await installedIn(join(app, 'node_modules'))), ...bundled, ...(await fontsIn(join(dist, 'assets')))];
}

async function installedIn(modules: string): Promise<Package[]> {
  const found: Package[] = [];
  for (const entry of await foldersIn(modules)) {
    const names = entry.startsWith('@')
      ? (await foldersIn(join(modules, entry))).map((name) => join(entry, name))
      : [entry];
    for (const name of names) {
      found.push(JSON.parse(await readFile(join(modules, name, 'package.json'), 'utf8')));
      found.push(...(await installedIn(join(modules, name, 'node_modules'))));
    }
  }
  return found;
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.')).map(({ name }) => name);
}

/** The build lists the packages of scripts only, so a font is known by its bytes. */
async function fontsIn(assets: string): Promise<Package[]> {
  const known = new Map<string, Package>();
  for (const name of await foldersIn(join(ROOT, FONTS))) {
    const folder = join(ROOT, FONTS, name);
    const font: Package = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    for (const file of await fontFiles(join(folder, 'files'))) known.set(await digestOf(file), font);
  }
  const fonts = await Promise.all(
    (await fontFiles(assets)).map(async (file) => {
      const font = known.get(await digestOf(file));
      if (font === undefined) throw new Error(`no package brings the font ${basename(file)}`);
      return font;
    }),
  );
  return fonts;
}

async function fontFiles(folder: string): Promise<string[]> {
  return (await readdir(folder)).filter((name) => name.endsWith('.woff2')).map((name) => join(folder, name));
}

async function digestOf(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}
