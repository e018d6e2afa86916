import { useEffect, useState } from 'react';

const SETTLED_MS = 200;

/**
 * The value after it has not changed for a moment, so that typing sends a request at a pause and not for each letter.
 */
export function useLate<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
