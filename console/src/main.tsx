/** The console's entry: styles, then the application. */

import './ui/fonts.css';
import './ui/tokens.css';
import './ui/base.css';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';
import { applyTheme } from './shell/theme.ts';

applyTheme();
const root = document.getElementById('root');
if (root === null) throw new Error('The page has no element "root".');
createRoot(root).render(<App />);
