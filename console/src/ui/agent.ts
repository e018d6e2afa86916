const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg\/(\d+)/, 'Edge'],
  [/\bOPR\/(\d+)/, 'Opera'],
  [/\bFirefox\/(\d+)/, 'Firefox'],
  [/\b(?:Headless)?Chrome\/(\d+)/, 'Chrome'],
  [/\bVersion\/(\d+).*\bSafari\//, 'Safari'],
];

const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\bWindows NT\b/, 'Windows'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bLinux\b/, 'Linux'],
];

/** `Firefox 143 on Linux`; a header that is no browser's as it is; undefined for none. */
export function agentName(header: string | null): string | undefined {
  if (header === null || header === '') return undefined;
  for (const [pattern, browser] of BROWSERS) {
    const version = pattern.exec(header)?.[1];
    if (version === undefined) continue;
    const system = SYSTEMS.find(([known]) => known.test(header))?.[1];
    return system === undefined ? `${browser} ${version}` : `${browser} ${version} on ${system}`;
  }
  return header.length > 60 ? `${header.slice(0, 60)}…` : header;
}
