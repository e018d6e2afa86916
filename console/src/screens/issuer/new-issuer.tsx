/** Adds an issuer: choose a template, give its few values, look through what it filled in. */

import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { Button as AriaButton } from 'react-aria-components';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { isName } from '../../api/names.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { issuerTemplates, templateInputs } from '../../text/en/issuer-templates.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import { Courses } from '../../ui/courses.tsx';
import { TextField } from '../../ui/field.tsx';
import { Form } from '../../ui/form.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { NameField } from '../../ui/name-field.tsx';
import { Page, SectionHead } from '../../ui/page.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { EMPTY_ISSUER, faultOf, hasPrivateKey, newIssuerOf } from './draft.ts';
import { IssuerForm } from './fields.tsx';
import { Grants } from './grants.tsx';
import styles from './issuer.module.css';
import {
  faultyInputs,
  filledBy,
  isFaulty,
  TEMPLATE_GROUPS,
  TEMPLATE_IDS,
  type TemplateId,
  type TemplateInput,
  type TemplateValues,
  templateOf,
} from './templates.ts';

const NO_VALUES: TemplateValues = {};
const ROWS = 6;

export function NewIssuer() {
  const { template } = useSearch({ from: '/inside/new-issuer' });
  const navigate = useNavigate({ from: '/new-issuer' });
  const choose = (id: TemplateId | undefined): void =>
    void navigate({ search: (before) => ({ ...before, template: id }) });
  return (
    <Page title={text.create} crumb={<Link to="/issuers">{text.crumb}</Link>}>
      {template === undefined ? <Templates onChoose={choose} /> : null}
      {template === undefined ? null : <Fields key={template} template={template} onOther={() => choose(undefined)} />}
    </Page>
  );
}

function Templates({ onChoose }: { readonly onChoose: (id: TemplateId) => void }) {
  return (
    <div className={styles.templates}>
      <p>{text.templatesSay}</p>
      {TEMPLATE_GROUPS.map((group) => (
        <section key={group}>
          <SectionHead title={text.groups[group]} />
          <ul className={styles.cards}>
            {TEMPLATE_IDS.filter((id) => templateOf(id).group === group).map((id) => (
              <li key={id}>
                <AriaButton className={styles.card} onPress={() => onChoose(id)}>
                  <b>{issuerTemplates[id].name}</b>
                  <small>{issuerTemplates[id].says}</small>
                </AriaButton>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

interface FieldsProps {
  readonly template: TemplateId;
  readonly onOther: () => void;
}

function Fields({ template, onOther }: FieldsProps) {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const denied = useDenied('admin:issuers');
  const [secret, setSecret] = useState('');
  const { inputs, roleClaim } = templateOf(template);
  const create = useCreation({
    form: `new issuer ${template}`,
    start: { ...EMPTY_ISSUER, values: NO_VALUES, isFilled: inputs.length === 0 },
    send: ({ values: _, isFilled: __, ...fields }) =>
      client.request('POST', '/v1/iam/issuers', { body: newIssuerOf(fields, secret) }),
    onCreated: async (issuer) => {
      setSecret('');
      await changed(tenant, 'issuers');
      void navigate({ to: '/issuers/$id', params: { id: issuer.id } });
    },
  });
  const { draft, set, error } = create;
  const other = (
    <Button small onPress={onOther}>
      {text.otherTemplate}
    </Button>
  );
  const notes = (
    <section>
      <SectionHead title={text.notes} />
      <ul className={styles.notes}>
        {issuerTemplates[template].notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </section>
  );
  if (!draft.isFilled) {
    return (
      <div className={styles.editor}>
        <Courses
          main={
            <Values
              template={template}
              values={draft.values}
              onChange={(values) => set({ values })}
              onFill={() => set({ ...filledBy(template, draft.values), name: nameOf(template), isFilled: true })}
              other={other}
            />
          }
          side={notes}
        />
      </div>
    );
  }
  const { name } = draft;
  const fault = name === '' ? text.nameNeeded : isName(name) ? faultOf(draft) : text.nameFault;
  return (
    <div className={styles.editor}>
      <Courses
        main={
          <Form noValidate className={styles.form} fault={fault} onSend={() => create.save()}>
            {inputs.length === 0 ? (
              <div>{other}</div>
            ) : (
              <Note
                action={
                  <Button small onPress={() => set({ isFilled: false })}>
                    {text.back}
                  </Button>
                }
              >
                {text.fromTemplate(issuerTemplates[template].name)}
              </Note>
            )}
            <NameField value={name} onChange={(value) => set({ name: value })} error={error} texts={text} autoFocus />
            <IssuerForm
              draft={draft}
              set={set}
              error={error}
              secret={secret}
              onSecret={setSecret}
              roleClaim={roleClaim}
            />
            <SaveBar
              work={create}
              action={text.creating}
              disabledReason={denied ?? fault}
              onClose={() => void navigate({ to: '/issuers' })}
            />
          </Form>
        }
        side={
          <>
            <Grants users={draft.users} />
            {notes}
          </>
        }
      />
    </div>
  );
}

function nameOf(template: TemplateId): string {
  return NAMES[template] ?? template;
}

/** Names that a filled issuer begins with, if not the template's id. */
const NAMES: Partial<Record<TemplateId, string>> = { github: 'github-actions', pasted: 'cluster', own: '' };

interface ValuesProps {
  readonly template: TemplateId;
  readonly values: TemplateValues;
  readonly onChange: (values: TemplateValues) => void;
  readonly onFill: () => void;
  readonly other: React.ReactNode;
}

function Values({ template, values, onChange, onFill, other }: ValuesProps) {
  const fault = faultyInputs(template, values).length === 0 ? undefined : text.faults.values;
  return (
    <Form noValidate className={styles.form} fault={fault} onSend={onFill}>
      <div className={styles.part}>
        <SectionHead title={issuerTemplates[template].name} small={issuerTemplates[template].says} />
        {templateOf(template).inputs.map((input, index) => (
          <ValueField key={input.name} input={input} values={values} onChange={onChange} isFirst={index === 0} />
        ))}
      </div>
      <div className={styles.acts}>
        <Button tone="primary" type="submit" disabledReason={fault}>
          {text.fill}
        </Button>
        {other}
        {fault === undefined ? null : <Small>{fault}</Small>}
      </div>
    </Form>
  );
}

interface ValueFieldProps {
  readonly input: TemplateInput;
  readonly values: TemplateValues;
  readonly onChange: (values: TemplateValues) => void;
  readonly isFirst: boolean;
}

function ValueField({ input, values, onChange, isFirst }: ValueFieldProps) {
  const { name, start = '', sample, kind, isOptional } = input;
  const words = templateInputs[name];
  const value = values[name] ?? start;
  const isWrong = value.trim() !== '' && isFaulty(input, values);
  return (
    <TextField
      label={words?.label ?? name}
      value={value}
      onChange={(next) => onChange({ ...values, [name]: hasPrivateKey(next) ? '' : next })}
      hint={words?.hint}
      error={isWrong ? words?.fault : undefined}
      placeholder={sample}
      autoComplete="off"
      isMono
      isOptional={isOptional ?? false}
      isRequired={isOptional !== true}
      autoFocus={isFirst}
      {...(kind === 'lines' ? { rows: ROWS } : {})}
    />
  );
}
