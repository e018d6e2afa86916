/** The members of a webhook that a caller writes. */

import { useState } from 'react';
import type { Webhook } from '../../../../client/index.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { TextField } from '../../ui/field.tsx';
import { PickList } from '../../ui/pick-list.tsx';
import { fieldError, isTaken } from '../../ui/problem.tsx';
import { eventItems } from './events.ts';

export interface WebhookFields {
  readonly url: string;
  readonly events: readonly string[];
  /** Empty: none. */
  readonly description: string;
}

export const NEW_WEBHOOK: WebhookFields = { url: '', events: [], description: '' };

const MAX_URL = 2048;
const MAX_DESCRIPTION = 200;

export function fieldsOf({ url, events, description }: Webhook): WebhookFields {
  return { url, events, description: description ?? '' };
}

/** Returns the fields as members of a request. An absent field is an absent member. */
export function changesOf({ url, description, ...same }: Partial<WebhookFields>) {
  return {
    ...same,
    ...(url === undefined ? {} : { url: url.trim() }),
    ...(description === undefined ? {} : { description: description.trim() === '' ? null : description.trim() }),
  };
}

/** Returns why the webhook cannot be sent; undefined: it can. */
export function faultOf({ url, events }: WebhookFields): string | undefined {
  if (url.trim() === '') return text.urlNeeded;
  if (!/^https?:\/\/./i.test(url.trim())) return text.urlFault;
  return events.length === 0 ? text.eventsNeeded : undefined;
}

interface WebhookFormProps {
  readonly draft: WebhookFields;
  readonly set: (change: Partial<WebhookFields>) => void;
  readonly error: unknown;
  readonly isNew: boolean;
}

export function WebhookForm({ draft, set, error, isNew }: WebhookFormProps) {
  const [typed, setTyped] = useState('');
  return (
    <>
      <TextField
        label={text.url}
        value={draft.url}
        onChange={(url) => set({ url })}
        hint={text.urlHint}
        error={isTaken(error) ? text.taken : fieldError(error, '/url')}
        placeholder="https://hooks.example.com/postern"
        maxLength={MAX_URL}
        autoComplete="off"
        isMono
        isRequired
        autoFocus={isNew}
      />
      <TextField
        label={text.description}
        value={draft.description}
        onChange={(description) => set({ description })}
        error={fieldError(error, '/description')}
        maxLength={MAX_DESCRIPTION}
        autoComplete="off"
        isOptional
      />
      <PickList
        label={text.events}
        placeholder={text.findEvent}
        typed={typed}
        onType={setTyped}
        items={eventItems(typed, draft.events)}
        selected={draft.events}
        onChange={(events) => set({ events })}
        empty={text.noEvent}
        error={fieldError(error, '/events')}
      />
    </>
  );
}
