import { useCallback, useEffect, useState } from 'react';
import { setShown } from '../api/drafts.ts';

/**
 * While `isShown`, a secret is on the screen for the only time: the leave guard asks before a link, the back button or
 * the end of the tab takes it away. Returns the function to call when the user has it.
 */
export function useShownOnce(isShown: boolean): () => void {
  const [secret] = useState(() => Symbol('shown once'));
  useEffect(() => {
    setShown(secret, isShown);
    return () => setShown(secret, false);
  }, [secret, isShown]);
  return useCallback(() => setShown(secret, false), [secret]);
}
