import type { PrincipalType } from '../../api/principal.tsx';

/** The user or key that an answer is about. */
export interface Subject {
  readonly type: PrincipalType;
  readonly id: string;
}
