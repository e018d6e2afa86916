/** The application: one cache of answers, one router. Its texts are English and run from left to right in every browser. */

import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { I18nProvider } from 'react-aria-components';
import { queries } from './api/queries.ts';
import { router } from './router.tsx';

export function App() {
  return (
    <I18nProvider locale="en-US">
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  );
}
