import { type RefObject, useEffect, useRef, useState } from 'react';

/** The width that a drawing has, in whole pixels. @param first until it is measured */
export function useWidth(first: number): { readonly ref: RefObject<HTMLElement | null>; readonly width: number } {
  const ref = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(first);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(([entry]) => {
      if (entry !== undefined && entry.contentRect.width > 0) setWidth(Math.floor(entry.contentRect.width));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, width };
}
