/** The field for metadata, which users and keys have. */
export const metadata = {
  label: 'Metadata',
  hint: 'For your own tools. No decision reads it, and everyone who sees this sees it: write no secrets here.',
  withoutName: 'Each pair needs a name.',
  twice: (name: string) => `Two pairs have the name ${name}.`,
} as const;
