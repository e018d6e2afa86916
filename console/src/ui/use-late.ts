import { useEffect, useState } from 'react';

const SETTLED_MS = 200;

/** The value as it was when it had not changed for a moment: what somebody types is asked for when they pause, not at every letter. */
export function useLate<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
