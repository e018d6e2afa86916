import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';

/** Asks whoever is at the terminal. Anything but `yes` is no, and so is going away (end of input, interrupt). */
export async function isAgreed(input: NodeJS.ReadableStream, output: NodeJS.WritableStream): Promise<boolean> {
  const terminal = createInterface({ input, output });
  const gone = once(terminal, 'close').then(() => 'no');
  try {
    const answer = await Promise.race([terminal.question('Apply this plan? Type yes to continue: ').catch(() => 'no'), gone]);
    return answer.trim() === 'yes';
  } finally {
    terminal.close();
  }
}
