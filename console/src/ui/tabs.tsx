/** Parts of one page, one of which is shown. */

import { type ReactNode, useEffect, useRef } from 'react';
import { Tabs as AriaTabs, Tab, TabList, TabPanel } from 'react-aria-components';
import styles from './tabs.module.css';

interface TabsProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly tabs: readonly { readonly value: T; readonly label: ReactNode }[];
  /** The content of the chosen tab. */
  readonly children: ReactNode;
}

export function Tabs<T extends string>({ label, value, onChange, tabs, children }: TabsProps<T>) {
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tab is chosen
  useEffect(() => showChosen(list.current), [value]);
  return (
    <AriaTabs
      selectedKey={value}
      onSelectionChange={(key) => {
        const chosen = tabs.find((tab) => tab.value === key);
        if (chosen !== undefined) onChange(chosen.value);
      }}
    >
      <TabList ref={list} aria-label={label} className={styles.tabs}>
        {tabs.map((tab) => (
          <Tab key={tab.value} id={tab.value} className={styles.tab}>
            {tab.label}
          </Tab>
        ))}
      </TabList>
      <TabPanel id={value} className={styles.panel}>
        {children}
      </TabPanel>
    </AriaTabs>
  );
}

/** Scrolls a list that is wider than the screen to the chosen tab, without scrolling the page. */
function showChosen(list: HTMLElement | null): void {
  const tab = list?.querySelector('[aria-selected=true]');
  if (list === null || tab === null || tab === undefined) return;
  const [frame, chosen] = [list.getBoundingClientRect(), tab.getBoundingClientRect()];
  if (chosen.right > frame.right) list.scrollLeft += chosen.right - frame.right;
  else if (chosen.left < frame.left) list.scrollLeft -= frame.left - chosen.left;
}
