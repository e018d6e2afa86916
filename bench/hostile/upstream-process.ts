/** The demo's stand-in upstream as a process of its own. Sends its port to its parent; ends with it. */

import { startUpstream } from '../../src/demo/upstream.ts';
import { prioritize } from './instrument.ts';

prioritize();
const upstream = await startUpstream('127.0.0.1', 0);
process.on('disconnect', () => process.exit(0));
process.send?.(upstream.port);
