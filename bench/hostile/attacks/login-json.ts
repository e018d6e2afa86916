/** Attack 1: 1 MB of nested JSON arrays posted to the login, without a credential. */

import { type Attack, hammer } from '../attack.ts';

const BODY_BYTES = 1_000_000;
const CONNECTIONS = 2;
const PIECE = '[],';

export const loginJson: Attack = {
  number: 1,
  title: '1 MB of JSON to /v1/auth/login',
  run({ edge }, _ammunition, untilMs) {
    const body = `[${PIECE.repeat(Math.floor(BODY_BYTES / PIECE.length))}[]]`;
    return hammer(edge, CONNECTIONS, { method: 'POST', path: '/v1/auth/login', body }, untilMs);
  },
};
