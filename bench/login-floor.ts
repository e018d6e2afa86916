/**
 * argon2id alone, in a process of its own: for each number that its parent sends it checks a wrong password so many times with the
 * parameters of the hash that it was started with, and answers how fast that was and what it cost in processor time.
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
