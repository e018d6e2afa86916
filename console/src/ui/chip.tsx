import { Button } from 'react-aria-components';
import styles from './chip.module.css';
import { Icon } from './icon.tsx';

/** A filter that is set; a press removes it. */
export function Chip({
  children,
  label,
  onRemove,
}: {
  readonly children: string;
  readonly label: string;
  readonly onRemove: () => void;
}) {
  return (
    <Button className={styles.chip} aria-label={`${children}, ${label}`} onPress={onRemove}>
      {children}
      <Icon name="close" size={12} />
    </Button>
  );
}
