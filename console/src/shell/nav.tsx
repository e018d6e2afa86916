/** The links to the screens. A link to a screen that the caller must not see leads to a page with the reason. */

import { Link } from '@tanstack/react-router';
import { shell } from '../text/en/shell.ts';
import { Icon, type IconName, Mark } from '../ui/icon.tsx';
import styles from './shell.module.css';

type Screen = keyof typeof shell.screens;

interface Way {
  readonly screen: Exclude<Screen, 'account'>;
  readonly to: string;
  readonly icon: IconName;
}

const GROUPS: readonly (readonly Way[])[] = [
  [{ screen: 'overview', to: '/', icon: 'overview' }],
  [
    { screen: 'keys', to: '/keys', icon: 'key' },
    { screen: 'connect', to: '/connect', icon: 'plug' },
  ],
  [
    { screen: 'users', to: '/users', icon: 'user' },
    { screen: 'roles', to: '/roles', icon: 'role' },
    { screen: 'policies', to: '/policies', icon: 'policy' },
    { screen: 'issuers', to: '/issuers', icon: 'issuer' },
    { screen: 'explain', to: '/explain', icon: 'explain' },
    { screen: 'access', to: '/access', icon: 'access' },
    { screen: 'trial', to: '/trial', icon: 'trial' },
  ],
  [
    { screen: 'usage', to: '/usage', icon: 'usage' },
    { screen: 'spend', to: '/spend', icon: 'spend' },
    { screen: 'budgets', to: '/budgets', icon: 'budget' },
    { screen: 'prices', to: '/prices', icon: 'price' },
  ],
  [
    { screen: 'audit', to: '/audit', icon: 'audit' },
    { screen: 'webhooks', to: '/webhooks', icon: 'webhook' },
  ],
];

const PLATFORM: readonly Way[] = [
  { screen: 'tenants', to: '/tenants', icon: 'tenant' },
  { screen: 'directory', to: '/directory', icon: 'directory' },
];

/** All of them, in the rail's order. */
export const WAYS: readonly Way[] = [...GROUPS.flat(), ...PLATFORM];

export function Nav({ onChoose }: { readonly onChoose?: () => void }) {
  const way = ({ screen, to, icon }: Way) => (
    <li key={screen}>
      <Link
        to={to}
        className={styles.link}
        activeOptions={{ exact: to === '/', includeSearch: false }}
        onClick={onChoose}
      >
        <Icon name={icon} />
        <span>{shell.screens[screen]}</span>
      </Link>
    </li>
  );
  return (
    <>
      <Link to="/" className={styles.brand}>
        <Mark />
        <span>postern</span>
      </Link>
      <nav aria-label={shell.nav}>
        {GROUPS.map((group, index) => (
          <ul key={group[0]?.screen} className={styles.nav}>
            {index === 0 ? null : <li className={styles.gap} />}
            {group.map(way)}
          </ul>
        ))}
        <ul className={styles.nav}>
          <li className={styles.heading}>{shell.platform}</li>
          {PLATFORM.map(way)}
        </ul>
      </nav>
    </>
  );
}
