import { useEffect, useRef, useState } from 'react';

/** How far below the screen something counts as seen already. */
const AHEAD = '200px';

/** Whether an element has been in view: for what is asked for only if somebody looks. */
export function useSeen<E extends Element>() {
  const place = useRef<E>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (place.current === null || isSeen) return undefined;
    const observer = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
      },
      { rootMargin: AHEAD },
    );
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [isSeen]);
  return { place, isSeen };
}
