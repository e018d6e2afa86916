/** Builds the console into `console/dist`: static files under /console, which the API process serves. */

import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  plugins: [react()],
  html: { cspNonce: '%NONCE%' },
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: 'es2023',
    // A small file would become a data: address, which the Content-Security-Policy refuses for fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
