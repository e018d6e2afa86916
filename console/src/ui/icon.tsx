/** Line icons on a grid of 16. They repeat what a word beside them says, so assistive technology does not read them. */

const PATHS = {
  overview: 'M2.5 13.5h11M4 11V8.5M8 11V3M12 11V6',
  key: 'M9.2 6.8a3.4 3.4 0 1 1 2 2L9.8 10.2H8.2v1.6H6.6v1.6H2.8v-2.6l6.4-4M11.2 4.8h.01',
  plug: 'M5.8 2v3M10.2 2v3M4 5h8v2.4a4 4 0 0 1-8 0zM8 11.4V14',
  user: 'M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM2.8 13.6c.6-2.3 2.6-3.5 5.2-3.5s4.6 1.2 5.2 3.5',
  role: 'M8 1.9l5 1.8v3.9c0 3-2 5.2-5 6.4-3-1.2-5-3.4-5-6.4V3.7z',
  policy: 'M3.5 2.5h9v11h-9zM6 6h4M6 8.5h4M6 11h2',
  issuer: 'M8 9.5a3.6 3.6 0 1 0 0-7.2 3.6 3.6 0 0 0 0 7.2zM5.8 9v4.8L8 12.4l2.2 1.4V9',
  explain: 'M4 2.5v5.5a3 3 0 0 0 3 3h5.5M9.8 8.3l2.7 2.7-2.7 2.7',
  access:
    'M6.5 7.5a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM2 13.3c.5-2.1 2.2-3.2 4.5-3.2 1 0 1.9.2 2.6.6M10.3 11.6l1.5 1.5 2.4-3',
  trial: 'M2.5 13V7.2a2.5 2.5 0 0 1 5 0V13M8.5 13V7.2a2.5 2.5 0 0 1 5 0V13M1.3 13h13.4',
  usage: 'M2.5 12a5.5 5.5 0 1 1 11 0M8 12l2.6-3.6',
  spend:
    'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM9.8 6.2c-.3-.7-1-1-1.8-1-1 0-1.8.5-1.8 1.3 0 1.9 3.6.9 3.6 2.9 0 .9-.8 1.4-1.8 1.4-.9 0-1.6-.4-1.9-1.1M8 4.3v7.4',
  budget: 'M2.5 4.5h11v8h-11zM2.5 7h11M5 10h3',
  price: 'M8.3 2.5h5.2v5.2l-6 6L2.3 8.5zM10.8 5.2h.01',
  webhook:
    'M5.5 6.5a2.5 2.5 0 1 1 3.9 2L11 11.2M8 6l-2.6 5.2M4 9.2a2.5 2.5 0 1 0 2.5 3H11m0 2a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z',
  audit: 'M3 3.5h10M3 7h6M3 10.5h4M11.5 9v2.3l1.5.9M14.5 11.3a3 3 0 1 1-6 0 3 3 0 0 1 6 0z',
  tenant: 'M3 13.5V5l5-2.5L13 5v8.5M1.8 13.5h12.4M6.5 13.5V10a1.5 1.5 0 0 1 3 0v3.5',
  directory: 'M6 2.5h4v3H6zM2 10.5h4v3H2zM10 10.5h4v3h-4zM8 5.5V8M4 10.5V8h8v2.5',
  menu: 'M2.5 5h11M2.5 11h11',
  down: 'M4.5 6.5L8 10l3.5-3.5',
  right: 'M6.5 4.5L10 8l-3.5 3.5',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3L13.5 13.5',
  export: 'M8 2.5v7.5M4.8 7L8 10.2 11.2 7M2.8 13.3h10.4',
  plus: 'M8 3v10M3 8h10',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  check: 'M3 8.5l3.3 3.3L13 4.8',
  dash: 'M4 8h8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  close: 'M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4',
  lock: 'M4 7.5h8v6H4zM5.6 7.5V5.2a2.4 2.4 0 0 1 4.8 0v2.3',
  care: 'M8 2.5l6 10.8H2zM8 6.6v3M8 11.4h.01',
  moon: 'M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6z',
  sun: 'M8 5.4a2.6 2.6 0 1 0 0 5.2 2.6 2.6 0 0 0 0-5.2zM8 1.6v1.4M8 13v1.4M1.6 8H3M13 8h1.4M3.5 3.5l1 1M11.5 11.5l1 1M12.5 3.5l-1 1M4.5 11.5l-1 1',
  out: 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6.5',
  door: 'M4 13.5V7a4 4 0 0 1 8 0v6.5M2.5 13.5h11',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={size}
      height={size}
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 2.2 : 1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark: a round-arched door with a keyhole of light. */
export function Mark({ size = 18 }: { readonly size?: number }) {
  return (
    <svg viewBox="0 0 16 16" width={size} height={size} fill="var(--accent)" aria-hidden="true">
      <path
        fillRule="evenodd"
        d="M2 15.5V7a6 6 0 0 1 12 0v8.5zM8 4.6a2.1 2.1 0 0 0-1.05 3.92L6.2 12.5h3.6l-.75-3.98A2.1 2.1 0 0 0 8 4.6z"
      />
    </svg>
  );
}
