/** Shows only the users of whom the directory says something that keeps them out, or whose address another user has. */

import { users as text } from '../../text/en/users.ts';
import buttonStyles from '../../ui/button.module.css';
import { Chip } from '../../ui/chip.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Menu } from '../../ui/overlay.tsx';
import { USERS_DIRECTORY, type UsersDirectory } from './search.ts';

interface DirectoryFilterProps {
  readonly state: UsersDirectory | undefined;
  readonly onChange: (state: UsersDirectory | undefined) => void;
}

export function DirectoryFilter({ state, onChange }: DirectoryFilterProps) {
  if (state !== undefined) {
    return (
      <Chip label={text.clearDirectory} onRemove={() => onChange(undefined)}>
        {nameOf(state)}
      </Chip>
    );
  }
  return (
    <Menu
      label={text.chooseDirectory}
      className={buttonStyles.button ?? ''}
      choices={USERS_DIRECTORY.map((id) => ({ id, label: nameOf(id), onChoose: () => onChange(id) }))}
    >
      {text.directory}
      <Icon name="down" />
    </Menu>
  );
}

function nameOf(state: UsersDirectory): string {
  return state === 'address_in_use' ? text.conflict : text.directoryStates[state];
}
