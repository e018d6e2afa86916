/** A request to try: who sends it, what, from where and when. */

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { simulation as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { ComboBox, type ComboItem } from '../../ui/combo-box.tsx';
import { TextField } from '../../ui/field.tsx';
import { Select } from '../../ui/select.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';
import { isAddress } from './networks.ts';
import styles from './policy.module.css';
import type { Sample, SampledRequest } from './samples.ts';

const KINDS = ['chat', 'history', 'embeddings', 'models', 'rag', 'other'] as const;
type Kind = (typeof KINDS)[number];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

interface NewSampleProps {
  readonly onAdd: (sample: Sample) => void;
  readonly onCancel: () => void;
}

export function NewSample({ onAdd, onCancel }: NewSampleProps) {
  const [who, setWho] = useState<Sample['principal']>();
  const [kind, setKind] = useState<Kind>('chat');
  const [name, setName] = useState('');
  const [method, setMethod] = useState<(typeof METHODS)[number]>('POST');
  const [path, setPath] = useState('/v1/');
  const [address, setAddress] = useState('');
  const [time, setTime] = useState('');
  const isOddAddress = address.trim() !== '' && !isAddress(address.trim());
  const add = (): void => {
    if (who === undefined) return;
    const request: SampledRequest = {
      subject: who.id,
      ...requestOf(kind, name.trim(), method, path.trim()),
      ...(address.trim() === '' ? {} : { client_ip: address.trim() }),
      ...(time === '' ? {} : { time: new Date(time).toISOString() }),
    };
    onAdd({ id: crypto.randomUUID(), source: 'given', principal: who, request });
  };
  return (
    <div className={styles.stack}>
      <Who onChoose={setWho} />
      <Select
        label={text.request}
        value={kind}
        onChange={setKind}
        options={KINDS.map((value) => ({ value, label: text.kinds[value] }))}
      />
      {kind === 'chat' || kind === 'embeddings' || kind === 'rag' ? (
        <TextField
          label={kind === 'rag' ? text.collection : text.model}
          value={name}
          onChange={setName}
          isMono
          isOptional={kind !== 'rag'}
        />
      ) : null}
      {kind === 'other' ? (
        <>
          <Select
            label={text.method}
            value={method}
            onChange={setMethod}
            options={METHODS.map((value) => ({ value, label: value }))}
            isMono
          />
          <TextField label={text.path} value={path} onChange={setPath} isMono />
        </>
      ) : null}
      <TextField
        label={text.address}
        value={address}
        onChange={setAddress}
        hint={text.addressHint}
        error={isOddAddress ? text.addressFault : undefined}
        isMono
        isOptional
      />
      <TextField
        label={text.time}
        type="datetime-local"
        value={time}
        onChange={setTime}
        hint={text.timeHint}
        isOptional
      />
      <div className={styles.foot}>
        <Button
          disabledReason={who === undefined ? text.whoNeeded : isOddAddress ? text.addressFault : undefined}
          onPress={add}
        >
          {text.addThis}
        </Button>
        <Button tone="quiet" onPress={onCancel}>
          {common.cancel}
        </Button>
      </div>
    </div>
  );
}

function requestOf(kind: Kind, name: string, method: string, path: string): SampledRequest {
  const model = name === '' ? {} : { model: name };
  switch (kind) {
    case 'chat':
      return { method: 'POST', path: '/v1/chat/completions', body: JSON.stringify({ ...model, messages: [] }) };
    case 'history':
      return { method: 'GET', path: '/v1/chat/history' };
    case 'embeddings':
      return { method: 'POST', path: '/v1/embeddings', body: JSON.stringify({ ...model, input: '' }) };
    case 'models':
      return { method: 'GET', path: '/v1/models' };
    case 'rag':
      return { method: 'POST', path: `/v1/rag/collections/${encodeURIComponent(name)}/query`, body: '{}' };
    case 'other':
      return { method, path };
    default:
      return kind satisfies never;
  }
}

const FOUND = 8;

interface WhoProps {
  readonly onChoose: (who: Sample['principal'] | undefined) => void;
}

/** Users and keys that the server finds for the typed text; an id is taken as it is. */
function Who({ onChoose }: WhoProps) {
  const { id: tenant, client } = useTenant();
  const [typed, setTyped] = useState('');
  const [chosen, setChosen] = useState<ComboItem>();
  const q = useSearchText(typed);
  const query = { limit: FOUND, status: 'active', ...(q === '' ? {} : { q }) } as const;
  const users = useQuery({
    queryKey: [tenant, 'users', 'to try', query],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/users', { query, signal }),
    retry: false,
  });
  const keys = useQuery({
    queryKey: [tenant, 'keys', 'to try', query],
    queryFn: ({ signal }) => client.request('GET', '/v1/iam/api-keys', { query, signal }),
    retry: false,
  });
  const isId = /^(?:usr|key)_\w+$/.test(q);
  const found: readonly ComboItem[] = [
    ...(users.data?.data ?? []).map(({ id, name, email }) => ({ id, name, small: email ?? text.user })),
    ...(keys.data?.data ?? []).map(({ id, name, description, last_four: last }) => ({
      id,
      name: name ?? (description === '' ? id : description),
      small: `${text.key} …${last}`,
    })),
    ...(isId ? [{ id: q, name: q }] : []),
  ];
  // The choice outlives the search that found it.
  const items = chosen === undefined || found.some(({ id }) => id === chosen.id) ? found : [chosen, ...found];
  const choose = (item: ComboItem | undefined): void => {
    setChosen(item);
    onChoose(item === undefined ? undefined : { type: item.id.startsWith('key_') ? 'api_key' : 'user', id: item.id });
  };
  return (
    <ComboBox
      label={text.who}
      items={items}
      typed={typed}
      onType={(text) => {
        setTyped(text);
        if (text !== chosen?.name) choose(undefined);
      }}
      chosen={chosen?.id}
      onChoose={(item) => {
        if (item === undefined) return;
        setTyped(item.name);
        choose(item);
      }}
      says={text.noWho}
      placeholder={text.whoPick}
    />
  );
}
