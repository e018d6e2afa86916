/**
 * The options of Node for every process that serves.
 *
 * - By default, V8 lets the space for new objects grow to three times 16 MB. The garbage of checks fits in half of that
 *   at the same processor time (`npm run bench -- gate`), and a server needs 50 MB less (`npm run bench -- population`).
 * - By default, V8 starts a full collection after each 64 MB of buffers outside of the heap, however large the heap is.
 *   The bodies of some 300 requests of 64 KB are that much, and marking the heap then costs more than their checks
 *   (`npm run bench -- body-size`). With the second option, the limit grows with the heap.
 *
 * @type {string[]}
 */
export const NODE_FLAGS = ['--max-semi-space-size=8', '--external-memory-accounted-in-global-limit'];
