/** What is wrong with a configuration, and where. No problem ever quotes a secret. */

/** A place in a file. Both numbers start at 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Problem {
  /** The file and position, or the environment variable; undefined when the fault is that something is nowhere. */
  readonly where:
    | { readonly kind: 'file'; readonly file: string; readonly at: Position | undefined }
    | { readonly kind: 'env'; readonly name: string }
    | undefined;
  /** As `grpc.listen` or `routes[2].path`; empty when the whole file is meant. */
  readonly path: string;
  /** What was expected and, unless it is secret, what was there. */
  readonly message: string;
}

/** One line, such as `postern.yaml:12:11: grpc.listen: expected host:port or unix:/path, got 99999`. */
export function formatProblem({ where, path, message }: Problem): string {
  const at = path === '' ? message : `${path}: ${message}`;
  switch (where?.kind) {
    case undefined:
      return at;
    case 'env':
      return `${where.name}: ${message}`;
    case 'file':
      return where.at === undefined
        ? `${where.file}: ${at}`
        : `${where.file}:${where.at.line}:${where.at.column}: ${at}`;
    default:
      return where satisfies never;
  }
}

/** The steps from a value down to what is wrong in it. */
export type Steps = readonly (string | number)[];

export function joinPath(path: string, steps: Steps): string {
  return path + steps.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
}
