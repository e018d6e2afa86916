/** The instants of a verified token of another issuer, in milliseconds since the epoch, with the issuer's tolerance. */
export interface IssuerTokenTimes {
  /** `iat`, without tolerance. */
  readonly iatMs: number;
  /** The token is not valid before this time. */
  readonly validFromMs: number;
  /** The token is expired at this time and later. */
  readonly validUntilMs: number;
  /** The token is too old at this time and later; Infinity = the issuer has no bound. */
  readonly tooOldFromMs: number;
}

/** Returns the state of the token at an instant. The expiry comes first: the others are reasons of a later step. */
export function stateAt(times: IssuerTokenTimes, nowMs: number): 'valid' | 'expired' | 'not_yet_valid' | 'too_old' {
  if (nowMs >= times.validUntilMs) return 'expired';
  if (nowMs < times.validFromMs) return 'not_yet_valid';
  return nowMs >= times.tooOldFromMs ? 'too_old' : 'valid';
}
