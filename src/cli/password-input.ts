import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';

interface Terminal extends NodeJS.ReadableStream {
  readonly isTTY?: boolean;
}

/** Asks for it where there is a terminal, and does not show what is typed; else takes the first line of the input. Empty at its end. */
export async function readPassword(input: Terminal, output: NodeJS.WritableStream, question: string): Promise<string> {
  const asks = input.isTTY === true;
  if (asks) output.write(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: silent, terminal: asks });
  try {
    return await new Promise<string>((resolve) => {
      lines
        .once('line', resolve)
        .once('SIGINT', () => resolve(''))
        .once('close', () => resolve(''));
    });
  } finally {
    lines.close();
    if (asks) output.write('\n');
  }
}
