/**
 * Assembles the files that the Dockerfile would put into the image, by its own instructions, without a container
 * engine.
 */

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, stat } from 'node:fs/promises';
import { basename, delimiter, dirname, join, relative, resolve } from 'node:path';
import type { Image, Stage, Step } from './dockerfile.ts';
import type { Ignore } from './ignore.ts';

export interface LayoutParts {
  readonly image: Image;
  readonly ignore: Ignore;
  /** The build context. */
  readonly context: string;
  /** An empty folder for the stages. */
  readonly scratch: string;
  /** The folder with the Node that the base image stands for. */
  readonly nodeFolder: string;
  readonly say: (line: string) => void;
}

/** Returns the folder that holds the image's root, without the files of its base. */
export async function assemble(parts: LayoutParts): Promise<string> {
  const folders = new Map<string, string>();
  let last = '';
  for (const [index, stage] of parts.image.stages.entries()) {
    last = join(parts.scratch, `${index}-${stage.name ?? 'image'}`);
    await mkdir(last);
    await build(parts, stage, last, folders);
    if (stage.name !== undefined) folders.set(stage.name, last);
  }
  return last;
}

async function build(
  parts: LayoutParts,
  stage: Stage,
  root: string,
  former: ReadonlyMap<string, string>,
): Promise<void> {
  let workdir = '/';
  const inside = (path: string): string => join(root, resolve(workdir, path));
  for (const step of stage.steps) {
    switch (step.kind) {
      case 'workdir':
        workdir = resolve(workdir, step.path);
        await mkdir(inside('.'), { recursive: true });
        break;
      case 'copy':
        await copy(parts, step, inside(step.target), former);
        break;
      case 'run':
        parts.say(`RUN ${step.command}`);
        await shell(step.command, inside('.'), parts.nodeFolder);
        break;
      default:
        step satisfies never;
    }
  }
}

type Copy = Extract<Step, { kind: 'copy' }>;

async function copy({ context, ignore }: LayoutParts, step: Copy, target: string, former: ReadonlyMap<string, string>) {
  const base = step.from === undefined ? context : former.get(step.from);
  if (base === undefined) throw new Error(`COPY --from=${step.from}: there is no such stage before it`);
  // As the builder does: into a folder when the target ends with a slash (or is one), else under the target's name.
  const intoFolder =
    /\/\.?$/.test(step.target) || step.target.endsWith('/') || step.target === './' || step.sources.length > 1;
  for (const source of step.sources) {
    const from = join(base, source);
    const excluded = (path: string): boolean => step.from === undefined && ignore.excludes(relative(base, path));
    if (!existsSync(from) || excluded(from)) throw new Error(`COPY ${source}: it is not in the build context`);
    const isFolder = (await stat(from)).isDirectory();
    const to = !isFolder && intoFolder ? join(target, basename(source)) : target;
    await mkdir(dirname(to), { recursive: true });
    await cp(from, to, { recursive: true, filter: (path) => !excluded(path), verbatimSymlinks: true });
  }
}

function shell(command: string, cwd: string, nodeFolder: string): Promise<void> {
  // What npm has already is as good as a download: the lock file holds every package's digest.
  const env = {
    npm_config_prefer_offline: 'true',
    PATH: `${nodeFolder}${delimiter}${process.env['PATH'] ?? ''}`,
    HOME: process.env['HOME'] ?? '/tmp',
  };
  return new Promise((done, fail) => {
    const child = spawn('/bin/sh', ['-c', command], { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] });
    child.once('error', fail);
    child.once('exit', (code) => (code === 0 ? done() : fail(new Error(`RUN ended with ${code}: ${command}`))));
  });
}
