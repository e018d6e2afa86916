const MAX_RADIUS = 10;

/** The path of a bar that stands on `bottom` and ends in a round arch. */
export function arch(x: number, bottom: number, width: number, height: number): string {
  const r = Math.min(width / 2, MAX_RADIUS, height);
  return `M${x} ${bottom}v${-(height - r)}a${width / 2} ${r} 0 0 1 ${width} 0v${height - r}z`;
}
