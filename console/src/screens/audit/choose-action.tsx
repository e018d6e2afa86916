/** The filter by action. The list has the actions that the server records. Other actions can be typed. */

import { useState } from 'react';
import { audit as text } from '../../text/en/audit.ts';
import { ChooseFrom } from '../../ui/choose-from.tsx';
import { ACTIONS } from './actions.ts';

export function ChooseAction({ onChoose }: { readonly onChoose: (action: string) => void }) {
  const [typed, setTyped] = useState('');
  const wanted = typed.trim().toLowerCase();
  const known = ACTIONS.filter((action) => action.includes(wanted));
  const isOther = wanted !== '' && !ACTIONS.some((action) => action === wanted);
  return (
    <ChooseFrom
      label={text.findAction}
      placeholder={text.findActionBy}
      typed={typed}
      onType={setTyped}
      items={[...known, ...(isOther ? [wanted] : [])].map((action) => ({ id: action, name: action }))}
      onChoose={onChoose}
      empty={text.findActionBy}
      isMono
    />
  );
}
