import { Fault } from '../domain/errors.ts';

/** The directory answered, and with a result code (RFC 4511, appendix A) that leaves the question open. */
/** A directory could not be asked, or its answer was none. */
export class UnavailableDirectory extends Fault {
  /** As it is configured. */
  readonly directory: string;

  constructor(directory: string, fault: Fault) {
    super(fault.message, { cause: fault });
    this.directory = directory;
  }
}

export class DirectoryFault extends Fault {
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

/** What went wrong, in the words of the socket or of the server. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
