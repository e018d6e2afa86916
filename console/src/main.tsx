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
  // What the first screen needs comes while the session is looked for, not after it. A file that does not come is the router's affair.
  const isHome = /^\/console\/?$/.test(location.pathname);
  const parts = [import('./shell/shell.tsx'), ...(isHome ? [import('./screens/overview/overview.tsx')] : [])];
  for (const part of parts) part.catch(() => undefined);
}
const root = document.getElementById('root');
if (root === null) throw new Error('The page has no element "root".');
createRoot(root).render(<App />);
