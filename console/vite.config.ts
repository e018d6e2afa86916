/** Builds the console into `console/dist`: static files under /console, which the API process serves. */

import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

const OTHER_LANGUAGES =
  /\/(?:react-aria|react-stately|react-aria-components)\/dist\/private\/intl\/(?:\w+\/)?(?!en-US)[a-z]{2}-[A-Z]{2}\.mjs$/;

/**
 * Leaves out what React Aria says in other languages than English: the rest of the page would not be in them, and they are half of some
 * screens. React Aria takes English where a language is undefined.
 */
const englishOnly: Plugin = {
  name: 'english only',
  load: { filter: { id: OTHER_LANGUAGES }, handler: () => 'export default undefined;' },
};

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react(), englishOnly],
  html: { cspNonce: '%NONCE%' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    // A small file would become a data: address, which the Content-Security-Policy refuses for fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The notices that the licenses of the bundled libraries ask for; the release's bill of materials reads them.
    license: { fileName: 'licenses.json' },
    // A slow machine is no fault of the build.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
});
