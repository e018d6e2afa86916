import { Fault } from '../domain/errors.ts';

/** A directory is unreachable, or its answer is a fault. */
export class UnavailableDirectory extends Fault {
  /** The configured name. */
  readonly directory: string;

  constructor(directory: string, fault: Fault) {
    super(fault.message, { cause: fault });
    this.directory = directory;
  }
}

/** The directory answered with a result code (RFC 4511, appendix A) that does not answer the request. */
export class DirectoryFault extends Fault {
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}
