/** Something the person at the terminal can put right; the message is one sentence that says how. */
export class CannotRun extends Error {}
