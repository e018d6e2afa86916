/** A bar chart as SVG, readable on light and dark pages. */

export interface Bar {
  readonly name: string;
  readonly value: number;
  /** Drawn in the accent color. */
  readonly isOwn: boolean;
}

const WIDTH = 760;
const NAME_WIDTH = 250;
const ROW_HEIGHT = 28;
const TOP = 44;
const VALUE_WIDTH = 90;

export function barChart(title: string, unit: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ value }) => value), 1e-9);
  const height = TOP + bars.length * ROW_HEIGHT + 12;
  const rows = bars.map(({ name, value, isOwn }, i) => {
    const y = TOP + i * ROW_HEIGHT;
    const width = ((WIDTH - NAME_WIDTH - VALUE_WIDTH) * value) / most;
    return [
      `<text x="${NAME_WIDTH - 10}" y="${y + 14}" text-anchor="end">${escapeXml(name)}</text>`,
      `<rect x="${NAME_WIDTH}" y="${y}" width="${width.toFixed(1)}" height="20" rx="3" fill="${isOwn ? '#2563eb' : '#94a3b8'}"/>`,
      `<text x="${(NAME_WIDTH + width + 8).toFixed(1)}" y="${y + 14}">${value.toFixed(1)} ${escapeXml(unit)}</text>`,
    ].join('');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="13" fill="#64748b">`,
    `<text x="8" y="22" font-size="15" font-weight="600">${escapeXml(title)}</text>`,
    ...rows,
    '</svg>\n',
  ].join('\n');
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
