/** The console's entry: styles, then the application. */

import './ui/fonts.css';
import './ui/tokens.css';
import './ui/base.css';
import { createRoot } from 'react-dom/client';
import { wasSignedIn } from './api/client.ts';
import { App } from './app.tsx';
import { applyTheme } from './shell/theme.ts';

applyTheme();
if (wasSignedIn()) {
  // Loads the files of the first screen while the session is requested. The router handles a file that fails to load.
  const isHome = /^\/console\/?$/.test(location.pathname);
  const parts = [import('./shell/shell.tsx'), ...(isHome ? [import('./screens/overview/overview.tsx')] : [])];
  for (const part of parts) part.catch(() => undefined);
}
const root = document.getElementById('root');
if (root === null) throw new Error('The page has no element "root".');
createRoot(root).render(<App />);
