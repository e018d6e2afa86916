/** Parts of one page, one of which is shown. */

import type { ReactNode } from 'react';
import { Tabs as AriaTabs, Tab, TabList, TabPanel } from 'react-aria-components';
import styles from './tabs.module.css';

interface TabsProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly tabs: readonly { readonly value: T; readonly label: ReactNode }[];
  /** What the chosen tab shows. */
  readonly children: ReactNode;
}

export function Tabs<T extends string>({ label, value, onChange, tabs, children }: TabsProps<T>) {
  return (
    <AriaTabs
      selectedKey={value}
      onSelectionChange={(key) => {
        const chosen = tabs.find((tab) => tab.value === key);
        if (chosen !== undefined) onChange(chosen.value);
      }}
    >
      <TabList aria-label={label} className={styles.tabs}>
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
