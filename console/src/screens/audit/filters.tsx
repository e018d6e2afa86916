/** The filters: what there is to choose, and what is chosen, here or by a link from elsewhere. */

import { useName } from '../../api/principal.tsx';
import { audit as text } from '../../text/en/audit.ts';
import { Chip } from '../../ui/chip.tsx';
import { Filter } from '../../ui/filter.tsx';
import { shortened } from '../../ui/mark.tsx';
import { ChooseAction } from './choose-action.tsx';
import { ChooseActor } from './choose-actor.tsx';
import { ChooseTime } from './choose-time.tsx';
import type { AuditSearch } from './search.ts';

interface FiltersProps {
  readonly search: AuditSearch;
  readonly onChange: (change: Partial<AuditSearch>) => void;
}

export function FilterButtons({ search, onChange }: FiltersProps) {
  const closing = (close: () => void) => (change: Partial<AuditSearch>) => {
    close();
    onChange(change);
  };
  return (
    <>
      <Filter label={text.actor} title={text.chooseActor}>
        {(close) => <ChooseActor onChoose={(actor) => closing(close)({ actor })} />}
      </Filter>
      <Filter label={text.action} title={text.chooseAction}>
        {(close) => <ChooseAction onChoose={(action) => closing(close)({ action })} />}
      </Filter>
      <Filter label={text.when} title={text.chooseTime}>
        {(close) => <ChooseTime search={search} onChoose={closing(close)} />}
      </Filter>
    </>
  );
}

export function FilterChips({ search, onChange }: FiltersProps) {
  const { actor, action, target, from, to, request_id: requestId } = search;
  const chip = (name: keyof typeof text.filterOf, shown: string) => (
    <Chip label={text.clear(text.filterOf[name])} onRemove={() => onChange({ [name]: undefined })}>
      {`${text.filterOf[name]} ${shown}`}
    </Chip>
  );
  return (
    <>
      {actor === undefined ? null : <ActorChip actor={actor} onRemove={() => onChange({ actor: undefined })} />}
      {action === undefined ? null : chip('action', action)}
      {target === undefined ? null : chip('target', target)}
      {requestId === undefined ? null : chip('request_id', requestId)}
      {from === undefined ? null : chip('from', shownTime(from))}
      {to === undefined ? null : chip('to', shownTime(to))}
    </>
  );
}

function ActorChip({ actor, onRemove }: { readonly actor: string; readonly onRemove: () => void }) {
  return actor.startsWith('usr_') || actor.startsWith('key_') ? (
    <NamedChip actor={actor} onRemove={onRemove} />
  ) : (
    <Chip label={text.clear(text.filterOf.actor)} onRemove={onRemove}>
      {`${text.filterOf.actor} ${actor}`}
    </Chip>
  );
}

function NamedChip({ actor, onRemove }: { readonly actor: string; readonly onRemove: () => void }) {
  const name = useName(actor.startsWith('usr_') ? 'user' : 'api_key', actor) ?? shortened(actor);
  return (
    <Chip label={text.clear(text.filterOf.actor)} onRemove={onRemove}>
      {`${text.filterOf.actor} ${name}`}
    </Chip>
  );
}

const moment = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** In the viewer's zone; as it is if it is no time. */
function shownTime(instant: string): string {
  const at = new Date(instant);
  return Number.isNaN(at.getTime()) ? instant : moment.format(at);
}
