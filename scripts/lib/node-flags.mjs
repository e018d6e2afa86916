/**
 * What Node is started with wherever Postern serves. V8 lets the space for new objects grow to three times 16 MB by itself; a check's
 * garbage fits in half of it, costs no more processor time so (`npm run bench -- gate`), and a server is 50 MB smaller
 * (`npm run bench -- population`).
 *
 * @type {string[]}
 */
export const NODE_FLAGS = ['--max-semi-space-size=8'];
