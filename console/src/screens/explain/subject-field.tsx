/**
 * Whom the question is about: one page of what the server finds for the typed text. An id that is pasted is taken as it
 * is.
 */

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Client } from '../../../../client/index.ts';
import { shownKey, shownPrincipal, useName } from '../../api/principal.tsx';
import { whileSearching } from '../../api/queries.ts';
import { keySearch, type SearchText } from '../../api/search-text.ts';
import { useTenant } from '../../api/session.ts';
import { explain as text } from '../../text/en/explain.ts';
import { ComboBox, type ComboItem } from '../../ui/combo-box.tsx';
import { shortened } from '../../ui/mark.tsx';
import { sentenceOf } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';

interface SubjectFieldProps {
  readonly kind: 'user' | 'key';
  readonly id: string | undefined;
  readonly onChange: (id: string | undefined) => void;
  /** Default: the kind's name. */
  readonly label?: string;
  readonly isOptional?: boolean;
}

const FOUND = 20;
const PREFIXES = { user: 'usr_', key: 'key_' } as const;
const ID_LENGTH = 30;

export function SubjectField(props: SubjectFieldProps) {
  return props.id === undefined ? <Field {...props} name="" /> : <Known {...props} id={props.id} />;
}

function Known({ id, ...props }: SubjectFieldProps & { readonly id: string }) {
  const name = useName(props.kind === 'user' ? 'user' : 'api_key', id) ?? shownPrincipal(id);
  return <Field {...props} id={id} name={name} />;
}

function Field({ kind, id, name, onChange, label, isOptional }: SubjectFieldProps & { readonly name: string }) {
  const tenant = useTenant();
  const [typed, setTyped] = useState<string>();
  const q = useSearchText(typed ?? '');
  const queryKey = [tenant.id, 'subjects', kind, q];
  const found = useQuery({
    queryKey,
    placeholderData: whileSearching(queryKey),
    queryFn: ({ signal }) => (kind === 'user' ? usersFor(tenant.client, q, signal) : keysFor(tenant.client, q, signal)),
  });
  const chosen: readonly ComboItem[] = id === undefined ? [] : [{ id, name }];
  const others = (found.data ?? []).filter((item) => item.id !== id);
  const none = kind === 'user' ? text.noneFound : text.noKeyFound;
  return (
    <ComboBox
      label={label ?? text[kind]}
      isOptional={isOptional ?? false}
      items={[...chosen, ...others]}
      typed={typed ?? name}
      onType={(next) => {
        if (next === (typed ?? name)) return;
        setTyped(next);
        onChange(isId(kind, next.trim()) ? next.trim() : undefined);
      }}
      chosen={id}
      onChoose={(item) => {
        if (item === undefined) return;
        setTyped(item.name);
        onChange(item.id);
      }}
      says={
        found.isPending || found.isPlaceholderData ? text.searching : found.isError ? sentenceOf(found.error) : none
      }
      placeholder={kind === 'user' ? text.findUser : text.findKey}
      isFree
    />
  );
}

function isId(kind: 'user' | 'key', typed: string): boolean {
  return typed.startsWith(PREFIXES[kind]) && typed.length >= ID_LENGTH;
}

async function usersFor(client: Client, q: SearchText, signal: AbortSignal): Promise<readonly ComboItem[]> {
  const { data } = await client.request('GET', '/v1/iam/users', {
    query: { limit: FOUND, ...(q === '' ? {} : { q }) },
    signal,
  });
  return data.map(({ id, name, email }) => ({ id, name, small: email ?? undefined }));
}

async function keysFor(client: Client, q: SearchText, signal: AbortSignal): Promise<readonly ComboItem[]> {
  const { data } = await client.request('GET', '/v1/iam/api-keys', {
    query: { limit: FOUND, ...keySearch(q) },
    signal,
  });
  return data.map((key) => ({
    id: key.id,
    name: key.name ?? (key.description === '' ? shortened(key.id) : key.description),
    small: shownKey(key),
  }));
}
