/** Adds, changes or removes one price. The server takes the whole list, unless it has changed since it was read. */

import { useState } from 'react';
import type { Price, Prices } from '../../../../client/index.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { PER, pricesChanged, readPrices, writePrices } from '../../api/prices.ts';
import { common } from '../../text/en/common.ts';
import { prices as text } from '../../text/en/prices.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm } from '../../ui/confirm.tsx';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { modelFault } from '../rates/rates.ts';
import styles from './prices.module.css';

const AMOUNT = /^(?:0|[1-9]\d{0,11})(?:\.\d{1,9})?$/;

interface PriceFields {
  readonly models: string;
  readonly input: string;
  readonly output: string;
  /** Empty: as `input`. */
  readonly cached_input: string;
  readonly cache_write: string;
}

const EMPTY: PriceFields = { models: '', input: '', output: '', cached_input: '', cache_write: '' };
const AMOUNTS = ['input', 'output', 'cached_input', 'cache_write'] as const;

interface PriceDrawerProps {
  readonly loaded: Tagged<Prices>;
  /** The models of the price; undefined: a new one. */
  readonly edited: string | undefined;
  /** The model of a new price. */
  readonly model: string | undefined;
  readonly onClose: () => void;
}

export function PriceDrawer({ loaded, edited, model, onClose }: PriceDrawerProps) {
  const [isRemoving, setRemoving] = useState(false);
  const [start] = useState(() => ({ ...EMPTY, models: model ?? '' }));
  const edit = useEdit<Prices, PriceFields>({
    form: `price ${edited ?? ''}`,
    loaded,
    fieldsOf: ({ prices }) => fieldsOf(prices.find(({ models }) => models === edited)) ?? start,
    read: readPrices,
    write: async (changes, ifMatch) => {
      // The ETag refuses the write if this read is another list than the one on the screen.
      const { prices } = (await readPrices()).data;
      const before = fieldsOf(prices.find(({ models }) => models === edited)) ?? start;
      const others = prices.filter(({ models }) => models !== edited);
      return writePrices([...others, priceOf({ ...before, ...changes })], ifMatch);
    },
    onSaved: () => {
      onClose();
      void pricesChanged();
    },
  });
  const { draft, set, base } = edit;
  const isTaken = draft.models !== edited && base.prices.some(({ models }) => models === draft.models);
  const fault = isTaken ? text.taken : faultOf(draft);
  const missing = fault ?? (edit.isChanged ? undefined : common.noChange);
  const amount = (name: (typeof AMOUNTS)[number], label: string, isOptional: boolean) => (
    <TextField
      label={label}
      value={draft[name]}
      onChange={(value) => set({ [name]: value.trim() })}
      error={draft[name] === '' || AMOUNT.test(draft[name]) ? undefined : text.amountFault}
      placeholder={isOptional ? text.sameAsInput : '0.00'}
      autoComplete="off"
      isOptional={isOptional}
      isMono
    />
  );
  return (
    <>
      <DrawerForm
        title={edited === undefined ? text.newTitle : text.editOf(edited)}
        work={edit}
        action={text.save}
        fault={missing}
        comparable={({ prices }) => prices.find(({ models }) => models === edited) ?? null}
        onClose={onClose}
        acts={edited === undefined ? null : <Button onPress={() => setRemoving(true)}>{text.remove}</Button>}
        noValidate
      >
        <TextField
          label={text.models}
          value={draft.models}
          onChange={(models) => set({ models: models.trim() })}
          hint={text.modelsHint}
          error={isTaken ? text.taken : draft.models === '' ? undefined : modelFault(draft.models)}
          autoComplete="off"
          isMono
          isRequired
          autoFocus={edited === undefined}
        />
        <Small>{text.amountsSay(base.currency)}</Small>
        <div className={styles.pair}>
          {amount('input', text.input, false)}
          {amount('output', text.output, false)}
        </div>
        <div className={styles.pair}>
          {amount('cached_input', text.cachedInput, true)}
          {amount('cache_write', text.cacheWrite, true)}
        </div>
        <Small>{text.saveSays}</Small>
      </DrawerForm>
      {isRemoving && edited !== undefined ? (
        <Remove loaded={loaded} removed={edited} onClose={() => setRemoving(false)} onRemoved={onClose} />
      ) : null}
    </>
  );
}

interface RemoveProps {
  readonly loaded: Tagged<Prices>;
  readonly removed: string;
  readonly onClose: () => void;
  readonly onRemoved: () => void;
}

function Remove({ loaded, removed, onClose, onRemoved }: RemoveProps) {
  return (
    <Confirm
      title={text.removeTitle(removed)}
      action={text.remove}
      perform={async () => {
        const kept = loaded.data.prices.filter(({ models }) => models !== removed);
        try {
          await writePrices(kept, loaded.etag);
        } catch (error) {
          void pricesChanged();
          throw error;
        }
      }}
      onClose={onClose}
      onDone={async () => {
        onRemoved();
        await pricesChanged();
      }}
    >
      <p>{text.removeSays}</p>
    </Confirm>
  );
}

function fieldsOf(price: Price | undefined): PriceFields | undefined {
  if (price === undefined) return undefined;
  const { models, input, output, cached_input: cached = '', cache_write: write = '' } = price;
  return { models, input, output, cached_input: cached, cache_write: write };
}

function priceOf({ models, input, output, cached_input: cached, cache_write: write }: PriceFields): Price {
  return {
    models,
    input,
    output,
    ...(cached === '' ? {} : { cached_input: cached }),
    ...(write === '' ? {} : { cache_write: write }),
    per: PER,
  };
}

/** Returns why the price cannot be sent; undefined: it can. */
function faultOf(fields: PriceFields): string | undefined {
  if (fields.models === '') return text.modelsNeeded;
  if (fields.input === '' || fields.output === '') return text.amountsNeeded;
  return (
    modelFault(fields.models) ??
    (AMOUNTS.every((name) => fields[name] === '' || AMOUNT.test(fields[name])) ? undefined : text.amountFault)
  );
}
