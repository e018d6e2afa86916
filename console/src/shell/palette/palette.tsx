/**
 * Search and commands: one field over screens, actions and what the server finds. The arrows walk while the caller
 * types.
 */

import {
  Autocomplete,
  Dialog,
  Header,
  Input,
  ListBox,
  ListBoxItem,
  ListBoxSection,
  Modal,
  ModalOverlay,
  TextField,
} from 'react-aria-components';
import { wantedOf } from '../../api/wanted.ts';
import { palette as text } from '../../text/en/palette.ts';
import { classes } from '../../ui/classes.ts';
import { OPEN_COMBO } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Hidden } from '../../ui/mark.tsx';
import overlay from '../../ui/overlay.module.css';
import { Problem } from '../../ui/problem.tsx';
import { useLate } from '../../ui/use-late.ts';
import { NEEDS } from '../needs.ts';
import type { Entry, Group } from './entries.ts';
import { type Found, useFound } from './found.ts';
import { useGroups } from './groups.ts';
import styles from './palette.module.css';

interface PaletteProps {
  readonly typed: string;
  readonly onType: (typed: string) => void;
  readonly onClose: () => void;
}

export function Palette(props: PaletteProps) {
  const { onClose } = props;
  return (
    <ModalOverlay
      className={overlay.scrim}
      isOpen
      isDismissable
      onOpenChange={(isOpen) => (isOpen ? undefined : onClose())}
    >
      <Modal className={styles.palette}>
        <Dialog aria-label={text.label} className={styles.inside}>
          <Search {...props} />
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}

const MAX_TYPED = 200;

function Search({ typed, onType, onClose }: PaletteProps) {
  const settled = useLate(typed);
  const found = useFound(wantedOf(settled));
  const isSearching = found.isSearching || settled !== typed;
  // The palette hides results for an older text, and shows all kinds together, because Enter opens the first entry.
  const groups = useGroups(typed, wantedOf(typed), isSearching ? { ...found, ...NONE } : found);
  const count = groups.reduce((sum, { entries }) => sum + entries.length, 0);
  const choose = (id: string): void => {
    const entry = groups.flatMap(({ entries }) => entries).find((one) => one.id === id);
    if (entry === undefined) return;
    onClose();
    entry.go();
  };
  return (
    <Autocomplete inputValue={typed} onInputChange={onType}>
      <TextField aria-label={text.field} className={styles.field} autoFocus maxLength={MAX_TYPED}>
        <Icon name="search" />
        <Input placeholder={text.says} spellCheck="false" autoComplete="off" {...OPEN_COMBO} />
        <span aria-hidden="true">
          <kbd>{text.esc}</kbd>
        </span>
      </TextField>
      <ListBox
        aria-label={text.label}
        className={styles.list}
        selectionMode="none"
        onAction={(id) => choose(String(id))}
        renderEmptyState={() => (isSearching || found.error !== undefined ? null : <Nothing typed={typed} />)}
      >
        {groups.map((group) => (
          <Section key={`${group.id} ${group.entries[0]?.id}`} group={group} typed={typed.trim()} />
        ))}
      </ListBox>
      <Hidden>
        <span role="status">{isSearching ? text.searching : text.count(count)}</span>
      </Hidden>
      {isSearching ? <p className={styles.says}>{text.searching}…</p> : null}
      {found.error === undefined ? null : (
        <div className={styles.says}>
          <Problem error={found.error} />
        </div>
      )}
      {found.left.length === 0 || isSearching ? null : <p className={styles.says}>{leftOut(found)}</p>}
      <footer className={styles.foot}>
        <span>
          <kbd>↑</kbd>
          <kbd>↓</kbd> {text.choose}
        </span>
        <span>
          <kbd>↵</kbd> {text.open}
        </span>
        <span>{text.keySays}</span>
      </footer>
    </Autocomplete>
  );
}

const NONE = { users: [], keys: [], roles: [], policies: [], issuers: [], tenants: [] } as const;

function Section({ group, typed }: { readonly group: Group; readonly typed: string }) {
  return (
    <ListBoxSection className={styles.section}>
      <Header className={styles.heading}>{text.groups[group.id]}</Header>
      {group.entries.map((entry) => (
        <Line key={entry.id} entry={entry} typed={typed} />
      ))}
    </ListBoxSection>
  );
}

function Line({ entry, typed }: { readonly entry: Entry; readonly typed: string }) {
  const { id, icon, name, detail, isMono = false, aside, keys = [] } = entry;
  return (
    <ListBoxItem
      id={id}
      textValue={[name, detail, aside].filter((part) => part !== undefined).join(', ')}
      className={styles.line}
    >
      <Icon name={icon} />
      <span className={styles.name}>
        <Marked text={name} wanted={typed} />{' '}
        {detail === undefined || detail === '' ? null : (
          <span className={classes(styles.detail, isMono && styles.mono)}>{detail}</span>
        )}
      </span>
      <span className={styles.aside}>
        {' '}
        {aside}
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </span>
    </ListBoxItem>
  );
}

/** The text, with the first place that says what was typed. */
function Marked({ text: whole, wanted }: { readonly text: string; readonly wanted: string }) {
  const at = wanted === '' ? -1 : whole.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return whole;
  return (
    <>
      {whole.slice(0, at)}
      <mark>{whole.slice(at, at + wanted.length)}</mark>
      {whole.slice(at + wanted.length)}
    </>
  );
}

const MAX_SAID = 40;

function shortOf(typed: string): string {
  return typed.length <= MAX_SAID ? typed : `${typed.slice(0, MAX_SAID)}…`;
}

function Nothing({ typed }: { readonly typed: string }) {
  return (
    <div className={styles.nothing}>
      <p>{text.nothing(shortOf(typed.trim()))}</p>
      <p>{text.nothingSays}</p>
    </div>
  );
}

function leftOut({ left }: Found): string {
  const permissions = left.map((kind) => NEEDS[kind].permission);
  return text.notSearched(text.list(left.map((kind) => text.groups[kind].toLowerCase())), text.list(permissions));
}
