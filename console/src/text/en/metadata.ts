/** The field for metadata, which users, keys and tenants have. */
export const metadata = {
  label: 'Metadata',
  nameLabel: 'Name',
  valueLabel: 'Value',
  addLabel: 'Add metadata',
  hint: 'At most 16 names. No decision reads them, and everyone who may see this sees them: never write a secret.',
  repeated: 'This name is above already.',
} as const;
