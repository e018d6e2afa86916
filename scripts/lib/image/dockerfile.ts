/**
 * Reads the subset of the Dockerfile language that this project's Dockerfile uses. An instruction outside that subset
 * is an error.
 */

export type Step =
  | { readonly kind: 'workdir'; readonly path: string }
  | {
      readonly kind: 'copy';
      /** A former stage; undefined: the build context. */
      readonly from: string | undefined;
      readonly sources: readonly string[];
      readonly target: string;
    }
  | { readonly kind: 'run'; readonly command: string };

export interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly steps: readonly Step[];
}

export interface Image {
  /** In order; the last one is the image. */
  readonly stages: readonly Stage[];
  readonly user: { readonly uid: number; readonly gid: number };
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

export class DockerfileError extends Error {
  override readonly name = 'DockerfileError';
}

type Draft = { -readonly [K in Exclude<keyof Image, 'stages'>]?: Image[K] } & {
  readonly stages: (Omit<Stage, 'steps'> & { readonly steps: Step[] })[];
};

/** @throws DockerfileError */
export function readDockerfile(text: string): Image {
  const draft: Draft = { stages: [], env: {}, labels: {} };
  const args: Record<string, string> = {};
  for (const line of instructions(text)) {
    const [, word = '', rest = ''] = /^(\w+)\s+(.*)$/s.exec(line) ?? [];
    take(draft, args, word.toUpperCase(), rest);
  }
  const { stages, user, workdir = '/', env = {}, labels = {}, entrypoint, command = [], healthCheck } = draft;
  if (user === undefined || entrypoint === undefined || healthCheck === undefined) {
    throw new DockerfileError('the Dockerfile needs USER, ENTRYPOINT and HEALTHCHECK');
  }
  return { stages, user, workdir, env, labels, entrypoint, command, healthCheck };
}

/** Logical lines: without comments, continued lines joined. */
function instructions(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function take(draft: Draft, args: Record<string, string>, word: string, rest: string): void {
  const stage = draft.stages.at(-1);
  if (word === 'FROM') {
    const [, base = '', name] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(rest) ?? [];
    draft.stages.push({ base, name, steps: [] });
    return;
  }
  if (stage === undefined) throw new DockerfileError(`${word} before FROM`);
  switch (word) {
    case 'WORKDIR':
      stage.steps.push({ kind: 'workdir', path: rest });
      draft.workdir = rest;
      return;
    case 'COPY':
      stage.steps.push(copyOf(rest));
      return;
    case 'RUN':
      stage.steps.push({ kind: 'run', command: rest });
      return;
    case 'ARG': {
      const [name = '', value = ''] = rest.split('=');
      args[name] = value;
      return;
    }
    case 'ENV':
      draft.env = { ...draft.env, ...pairsOf(rest, args) };
      return;
    case 'LABEL':
      draft.labels = { ...draft.labels, ...pairsOf(rest, args) };
      return;
    case 'USER':
      draft.user = userOf(rest);
      return;
    case 'ENTRYPOINT':
      draft.entrypoint = execForm(rest);
      return;
    case 'CMD':
      draft.command = execForm(rest);
      return;
    case 'HEALTHCHECK':
      draft.healthCheck = execForm(/\bCMD\s+(.*)$/.exec(rest)?.[1] ?? '');
      return;
    case 'EXPOSE':
    case 'STOPSIGNAL':
      return;
    default:
      throw new DockerfileError(`${word} is not among the instructions that this reader knows`);
  }
}

function copyOf(rest: string): Step {
  const words = rest.split(/\s+/);
  const from = words[0]?.startsWith('--from=') === true ? words.shift()?.slice('--from='.length) : undefined;
  const target = words.pop();
  if (target === undefined || words.length === 0 || words[0]?.startsWith('--') === true) {
    throw new DockerfileError(`COPY ${rest} has a form that this reader does not know`);
  }
  return { kind: 'copy', from, sources: words, target };
}

function pairsOf(rest: string, args: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = [...rest.matchAll(/([\w.-]+)=(?:"([^"]*)"|(\S+))/g)];
  return Object.fromEntries(
    pairs.map(([, name = '', quoted, plain]) => [
      name,
      (quoted ?? plain ?? '').replaceAll(/\$\{(\w+)\}/g, (_, arg: string) => args[arg] ?? ''),
    ]),
  );
}

function userOf(rest: string): Image['user'] {
  const [, uid, gid] = /^(\d+):(\d+)$/.exec(rest) ?? [];
  if (uid === undefined || gid === undefined) throw new DockerfileError('USER must be numeric, uid:gid');
  return { uid: Number(uid), gid: Number(gid) };
}

function execForm(rest: string): readonly string[] {
  const parsed: unknown = rest.startsWith('[') ? JSON.parse(rest) : undefined;
  if (!Array.isArray(parsed)) throw new DockerfileError(`${rest} is not in exec form, so it would need a shell`);
  return parsed.map(String);
}
