import { useRouter } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { SearchText } from '../api/search-text.ts';
import { useSearchText } from './use-search-text.ts';

/**
 * The text of a search field whose value is in the address. The typed text replaces it when the typing pauses, and a
 * link to another search replaces the text of the field. Once another page is on its way, the text stays out of the
 * address, which would lead back.
 *
 * @param held the value in the address
 * @param onSettle puts the typed text into the address
 */
export function useTyped(
  held: string,
  onSettle: (text: SearchText) => void,
): readonly [string, (text: string) => void] {
  const [typed, setTyped] = useState(held);
  const settled = useSearchText(typed);
  /** The last value that the field and the address agreed on. */
  const agreed = useRef<string>(held);
  const router = useRouter();
  const page = useRef(router.latestLocation.pathname);
  const settle = useEffectEvent((text: SearchText) => {
    if (router.latestLocation.pathname === page.current) onSettle(text);
  });
  useEffect(() => {
    if (settled === agreed.current) return;
    agreed.current = settled;
    settle(settled);
  }, [settled]);
  useEffect(() => {
    if (held === agreed.current) return;
    agreed.current = held;
    setTyped(held);
  }, [held]);
  return [typed, setTyped];
}
