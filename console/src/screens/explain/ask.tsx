/** The question: who, which request, from where, when. */

import { useMe } from '../../api/session.ts';
import { explain as text } from '../../text/en/explain.ts';
import { Button } from '../../ui/button.tsx';
import { ComboBox } from '../../ui/combo-box.tsx';
import { Segments, TextField } from '../../ui/field.tsx';
import { Form } from '../../ui/form.tsx';
import { Note } from '../../ui/mark.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { Select } from '../../ui/select.tsx';
import styles from './explain.module.css';
import { type Draft, METHODS, PATHS } from './question.ts';
import { SubjectField } from './subject-field.tsx';

interface AskFormProps {
  readonly draft: Draft;
  readonly onChange: (draft: Draft) => void;
  readonly onAsk: () => void;
  /** The button's text; default: that of an explanation. */
  readonly action?: string;
  /** The reason why no request can be explained now; undefined: one can. */
  readonly disabledReason?: string | undefined;
  readonly isRunning: boolean;
  readonly error: unknown;
  /** The caller may ask about itself only. */
  readonly isSelfOnly: boolean;
}

export function AskForm(props: AskFormProps) {
  const { draft, onChange, onAsk, action = text.ask, disabledReason, isRunning, error, isSelfOnly } = props;
  const set = (change: Partial<Draft>): void => onChange({ ...draft, ...change });
  const missing = disabledReason ?? missingOf(draft);
  const typed = draft.path.trim();
  const isKnown = PATHS.some((path) => path === typed);
  const paths = PATHS.filter((path) => isKnown || path.includes(typed));
  return (
    <Form noValidate className={styles.ask} fault={missing} onSend={() => onAsk()}>
      {isSelfOnly ? (
        <Self />
      ) : (
        <>
          <Segments
            label={text.who}
            value={draft.kind}
            onChange={(kind) => (kind === draft.kind ? undefined : set({ kind, subject: undefined }))}
            options={(['user', 'key'] as const).map((value) => ({ value, label: text.kinds[value] }))}
          />
          <SubjectField
            key={draft.kind}
            kind={draft.kind}
            id={draft.subject}
            onChange={(subject) => set({ subject })}
          />
        </>
      )}
      <div className={styles.request}>
        <Select
          label={text.method}
          value={METHODS.find((method) => method === draft.method) ?? 'POST'}
          onChange={(method) => set({ method })}
          options={METHODS.map((value) => ({ value, label: value }))}
          isMono
        />
        <ComboBox
          label={text.path}
          items={paths.map((path) => ({ id: path, name: path }))}
          typed={draft.path}
          onType={(path) => set({ path })}
          chosen={paths.find((path) => path === typed)}
          onChoose={(item) => (item === undefined ? undefined : set({ path: item.id }))}
          error={fieldError(error, '/path')}
          isMono
          isFree
        />
      </div>
      <TextField
        label={text.model}
        value={draft.model}
        onChange={(model) => set({ model })}
        hint={text.modelHint}
        isMono
        isOptional
      />
      <TextField
        label={text.address}
        value={draft.address}
        onChange={(address) => set({ address })}
        hint={text.addressHint}
        error={fieldError(error, '/client_ip')}
        isMono
        isOptional
      />
      <TextField
        label={text.when}
        value={draft.when}
        onChange={(when) => set({ when })}
        type="datetime-local"
        hint={text.whenHint(Intl.DateTimeFormat().resolvedOptions().timeZone)}
        error={fieldError(error, '/time')}
        isOptional
      />
      <Button tone="primary" type="submit" disabledReason={missing} isPending={isRunning}>
        {action}
      </Button>
    </Form>
  );
}

function Self() {
  const me = useMe();
  return (
    <Note>
      <b>{me.name}</b>: {text.aboutYou}
    </Note>
  );
}

function missingOf({ kind, subject, path }: Draft): string | undefined {
  if (subject === undefined) return kind === 'user' ? text.needsUser : text.needsKey;
  return path.trim().startsWith('/') ? undefined : text.needsPath;
}
