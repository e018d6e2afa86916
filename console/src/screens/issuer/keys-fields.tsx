/** Where the keys of an issuer come from: its discovery document, an address, or a pasted set. */

import { useState } from 'react';
import { issuers as text } from '../../text/en/issuers.ts';
import { Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { hasPrivateKey, KEY_SOURCES } from './draft.ts';
import type { FieldsProps } from './fields.tsx';
import styles from './issuer.module.css';

const KEY_SET_ROWS = 8;
const CA_ROWS = 4;
const MAX_CA = 65_536;
const MAX_URI = 2048;

export function KeysFields({ draft, set, error }: FieldsProps) {
  const { keys, kind, ca } = draft;
  const [hadPrivate, setHadPrivate] = useState(false);
  const sources = kind === 'spiffe' ? KEY_SOURCES.filter((one) => one !== 'discovery') : KEY_SOURCES;
  return (
    <section className={styles.part}>
      <SectionHead title={text.keysTitle} small={text.keysSay} />
      <div className={styles.choice}>
        <Segments
          label={text.source}
          value={keys.source}
          onChange={(source) => set({ keys: { ...keys, source } })}
          options={sources.map((value) => ({ value, label: text.sources[value] }))}
        />
        <Small>{text.sourcesSay[keys.source]}</Small>
      </div>
      {keys.source === 'address' ? (
        <TextField
          label={text.jwksUri}
          value={keys.jwks_uri}
          onChange={(uri) => set({ keys: { ...keys, jwks_uri: uri } })}
          error={fieldError(error, '/jwks_uri')}
          placeholder="https://"
          autoComplete="off"
          maxLength={MAX_URI}
          isMono
        />
      ) : null}
      {keys.source === 'pasted' ? (
        <TextField
          label={text.keySet}
          value={keys.jwks}
          onChange={(jwks) => {
            const isPrivate = hasPrivateKey(jwks);
            setHadPrivate(isPrivate);
            set({ keys: { ...keys, jwks: isPrivate ? '' : jwks } });
          }}
          hint={text.keySetHint}
          error={hadPrivate ? text.keySetPrivate : fieldError(error, '/jwks')}
          placeholder='{"keys": […]}'
          autoComplete="off"
          rows={KEY_SET_ROWS}
          isMono
        />
      ) : (
        <TextField
          label={text.ca}
          value={ca}
          onChange={(pem) => set({ ca: hasPrivateKey(pem) ? '' : pem })}
          hint={text.caHint}
          error={fieldError(error, '/ca')}
          placeholder="-----BEGIN CERTIFICATE-----"
          autoComplete="off"
          rows={CA_ROWS}
          maxLength={MAX_CA}
          isMono
          isOptional
        />
      )}
    </section>
  );
}
