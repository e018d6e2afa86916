/** The login to the console by an issuer. The secret is beside the form: no draft holds it. */

import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Checkbox, TextField } from '../../ui/field.tsx';
import { Id, Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { type SsoFields as Fields, NEW_SSO } from './draft.ts';
import type { FieldsProps } from './fields.tsx';
import styles from './issuer.module.css';

const MAX_LABEL = 100;
const MAX_ID = 255;
const MAX_SECRET = 1024;
const SCOPE = /^[!#-[\]-~]{1,64}$/;

export function SsoFields({ draft, set, error, secret, onSecret, id }: FieldsProps) {
  const { sso, users } = draft;
  const change = (part: Partial<Fields>): void => set({ sso: { ...(sso ?? NEW_SSO), ...part } });
  return (
    <section className={styles.part}>
      <SectionHead title={text.sso} small={text.ssoSay} />
      <div data-fault={sso === undefined && fieldError(error, '/sso') !== undefined ? '' : undefined}>
        <Checkbox
          isSelected={sso !== undefined}
          isDisabled={users === undefined}
          onChange={(isOn) => set({ sso: isOn ? NEW_SSO : undefined })}
        >
          {text.ssoOn}
        </Checkbox>
        {users === undefined ? <Small>{text.ssoNeedsUsers}</Small> : null}
      </div>
      {sso === undefined ? null : (
        <>
          <div className={styles.two}>
            <TextField
              label={text.label}
              value={sso.label}
              onChange={(label) => change({ label })}
              hint={text.labelHint}
              error={fieldError(error, '/sso/label')}
              autoComplete="off"
              maxLength={MAX_LABEL}
              isRequired
            />
            <TextField
              label={text.clientId}
              value={sso.client_id}
              onChange={(clientId) => change({ client_id: clientId })}
              error={fieldError(error, '/sso/client_id')}
              autoComplete="off"
              maxLength={MAX_ID}
              isMono
              isRequired
            />
            {sso.replaces ? (
              <TextField
                label={text.clientSecret}
                type="password"
                value={secret}
                onChange={onSecret}
                hint={text.clientSecretHint}
                error={fieldError(error, '/sso/client_secret')}
                autoComplete="one-time-code"
                maxLength={MAX_SECRET}
                isOptional={id === undefined}
              />
            ) : (
              <div className={styles.stored}>
                <Small>{sso.isStored ? text.secretStored : text.secretAbsent}</Small>
                <Button small onPress={() => change({ replaces: true })}>
                  {sso.isStored ? text.replaceSecret : text.setSecret}
                </Button>
              </div>
            )}
            <TextField
              label={text.requiredAcr}
              value={sso.required_acr}
              onChange={(acr) => change({ required_acr: acr })}
              hint={text.requiredAcrHint}
              error={fieldError(error, '/sso/required_acr')}
              autoComplete="off"
              maxLength={MAX_ID}
              isMono
              isOptional
            />
          </div>
          <TagInput
            label={text.scopes}
            values={sso.scopes}
            onChange={(scopes) => change({ scopes })}
            check={(scope) => (SCOPE.test(scope) ? undefined : text.scopeFault)}
            hint={text.scopesHint}
            error={fieldError(error, '/sso/scopes')}
          />
          {id === undefined ? (
            <Small>{text.addressesLater}</Small>
          ) : (
            <>
              <Small>{text.registerThese}</Small>
              <Facts
                facts={[
                  { name: text.redirectUri, value: <Address path={`${id}/callback`} /> },
                  { name: text.logoutUri, value: <Address path={`${id}/backchannel-logout`} /> },
                ]}
              />
            </>
          )}
        </>
      )}
    </section>
  );
}

function Address({ path }: { readonly path: string }) {
  const address = `${location.origin}/v1/auth/sso/${path}`;
  return <Id value={address} shown={address} />;
}
