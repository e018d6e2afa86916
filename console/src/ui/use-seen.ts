import { useEffect, useRef, useState } from 'react';

/** How far below the screen something counts as seen already. */
const AHEAD = '200px';

/** Reports whether an element has been in view, for data that is requested only then. */
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
