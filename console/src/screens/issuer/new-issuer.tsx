/** Adds an issuer: choose a template, give its few values, look through what it filled in. */

import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { Button as AriaButton } from 'react-aria-components';
import { ProblemError } from '../../../../client/index.ts';
import { useCreation } from '../../api/edit.ts';
import { isIssuerName, issuersChanged } from '../../api/issuers.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { issuerTemplates, templateInputs } from '../../text/en/issuer-templates.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import { Courses } from '../../ui/courses.tsx';
import { TextField } from '../../ui/field.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { Page, SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
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
      {template === undefined ? null : <Form key={template} template={template} onOther={() => choose(undefined)} />}
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

interface FormProps {
  readonly template: TemplateId;
  readonly onOther: () => void;
}

function Form({ template, onOther }: FormProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
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
      await issuersChanged(queries, tenant);
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
  const isTaken = error instanceof ProblemError && error.code === 'already_exists';
  const malformed = name === '' || isIssuerName(name) ? undefined : text.nameFault;
  const fault = (name === '' ? text.nameNeeded : malformed) ?? faultOf(draft);
  return (
    <div className={styles.editor}>
      <Courses
        main={
          <form
            noValidate
            className={styles.form}
            onSubmit={(event) => {
              event.preventDefault();
              if (fault === undefined) create.save();
            }}
          >
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
            <TextField
              label={text.name}
              value={name}
              onChange={(value) => {
                set({ name: value });
                if (isTaken) create.reset();
              }}
              hint={text.nameHint}
              error={malformed ?? (isTaken ? text.taken : fieldError(error, '/name'))}
              maxLength={63}
              autoComplete="off"
              isMono
              isRequired
              autoFocus
            />
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
          </form>
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
  const isReady = faultyInputs(template, values).length === 0;
  return (
    <form
      noValidate
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) onFill();
      }}
    >
      <div className={styles.part}>
        <SectionHead title={issuerTemplates[template].name} small={issuerTemplates[template].says} />
        {templateOf(template).inputs.map((input, index) => (
          <ValueField key={input.name} input={input} values={values} onChange={onChange} isFirst={index === 0} />
        ))}
      </div>
      <div className={styles.acts}>
        <Button tone="primary" type="submit" disabledReason={isReady ? undefined : text.faults.values}>
          {text.fill}
        </Button>
        {other}
        {isReady ? null : <Small>{text.faults.values}</Small>}
      </div>
    </form>
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
