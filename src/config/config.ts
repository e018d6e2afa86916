/** The configuration of the modules: parsed, complete and frozen. Secrets are separate, so a Config can be logged. */

import type { DirectorySettings } from '../directory/settings.ts';
import type { ValuesOf } from './setting.ts';
import type { CONFIG_SETTINGS, SECRET_SETTINGS } from './settings.ts';

type Settings = ValuesOf<typeof CONFIG_SETTINGS>;

/** One directory, without the password of its service account. */
export interface DirectoryConfig extends Omit<DirectorySettings, 'serviceAccount'> {
  /** The name with which the service account binds. */
  readonly bindDn: string | undefined;
}

export interface Config extends Omit<Settings, 'grpc'> {
  readonly grpc: Omit<Settings['grpc'], 'tls'> & {
    /** Undefined = without TLS. If there is a client CA, the listener requires a certificate from it. */
    readonly tls:
      | { readonly certFile: string; readonly keyFile: string; readonly clientCaFile: string | undefined }
      | undefined;
  };
  /** The enabled directories, in the order in which a login tries them. Their names are unique. */
  readonly directories: readonly DirectoryConfig[];
}

export interface Secrets extends ValuesOf<typeof SECRET_SETTINGS> {
  /** The passwords of the directories' service accounts, by the name of the directory. */
  readonly directoryPasswords: Readonly<Record<string, string>>;
}
