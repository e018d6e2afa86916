export const PART_NAMES: readonly string[];
