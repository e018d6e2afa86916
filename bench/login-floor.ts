/**
 * argon2id only, in a process of its own. For each number that its parent sends, it checks a wrong password that number
 * of times with the parameters of its hash, and answers with the time and the processor time.
 */

import { verify } from '@node-rs/argon2';

const [stored = ''] = process.argv.slice(2);

process.on('message', async (checks: number) => {
  const cpu = process.cpuUsage();
  const started = performance.now();
  for (let i = 0; i < checks; i++) await verify(stored, 'not the password');
  const elapsedMs = performance.now() - started;
  const { user, system } = process.cpuUsage(cpu);
  process.send?.({ perSecond: (checks / elapsedMs) * 1000, cpuMs: (user + system) / 1000 / checks });
});
