/** The chart's README: a fixed beginning, and a table of every value. */

import { pathsOfChart } from './config-schema.ts';
import type { DocumentedValue } from './values-docs.ts';

const BEGINNING = `# The chart \`postern\`

Installs Postern on Kubernetes 1.30 or later. [docs/kubernetes.md](../../docs/kubernetes.md) is the guide; this page lists every value.
\`npm run chart\` writes this page and \`values.schema.json\` from \`values.yaml\`, and Envoy's configuration in \`files/\` as \`postern envoy config\` prints it.

\`values.schema.json\` rejects unknown values and values of the wrong type. If values cannot work together, the chart fails with a sentence
that says what to set. The chart does not install PostgreSQL.

| value | default | meaning |
|---|---|---|
`;

function endOfPage(): string {
  const paths = pathsOfChart().map((path) => `\`${path}\``);
  return `
Members of \`config\` are [Postern's settings](../../docs/configuration.md), except every secret, which \`database\`, \`secretKey\`, \`bootstrap\`
and \`secretFiles\` hold, and these, which the chart sets itself: ${paths.join(', ')}.
Values that Helm passes to subcharts (\`global\`) have no effect.
`;
}

export function chartReadme(values: readonly DocumentedValue[]): string {
  const rows = values.map(
    ({ path, description, value }) => `| \`${path.join('.')}\` | ${shown(value)} | ${escaped(description)} |\n`,
  );
  return `${BEGINNING}${rows.join('')}${endOfPage()}`;
}

function shown(json: string): string {
  return json === '""' || json === 'null' ? '–' : `\`${escaped(json)}\``;
}

function escaped(text: string): string {
  return text.replaceAll('|', '\\|');
}
