/** Chooses an issuer of the tenant by its name: what the server finds for the typed text. */

import { useIssuers } from '../../api/issuers.ts';
import { common } from '../../text/en/common.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { ComboBox } from '../../ui/combo-box.tsx';
import { sentenceOf } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';

interface IssuerFieldProps {
  readonly name: string;
  readonly onChange: (name: string) => void;
  readonly error?: string | undefined;
}

export function IssuerField({ name, onChange, error }: IssuerFieldProps) {
  const q = useSearchText(name);
  const list = useIssuers({ q: q === '' ? undefined : q });
  const rows = list.kind === 'loaded' ? list.rows : [];
  return (
    <ComboBox
      label={text.issuer}
      items={rows.map((issuer) => ({ id: issuer.name, name: issuer.name, small: issuer.issuer }))}
      typed={name}
      onType={onChange}
      chosen={rows.some((issuer) => issuer.name === name) ? name : undefined}
      onChoose={(item) => {
        if (item !== undefined) onChange(item.name);
      }}
      says={list.kind === 'loading' ? common.loading : list.kind === 'failed' ? sentenceOf(list.error) : text.noneFound}
      error={error}
      placeholder={text.findIssuer}
      isFree
      isMono
      isRequired
    />
  );
}
