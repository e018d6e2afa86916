/**
 * A scripted domain controller of a forest, for answers that Samba does not give: "who am I" (RFC 4532) and
 * msDS-PrincipalName. It takes simple binds by DN, UPN and DOMAIN\name, and searches with and, or, not, equality and
 * presence.
 */

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';

export interface PeerAccount {
  readonly dn: string;
  readonly password: string;
  /** Lower-case names. */
  readonly attributes: Readonly<Record<string, string | Buffer>>;
  /** `data` of code 49 when the password is right. */
  readonly refusal?: string;
}

export interface PeerOptions {
  readonly accounts: readonly PeerAccount[];
  /** Undefined = the operation is not supported, as at Samba. */
  readonly whoAmI: (bound: PeerAccount | undefined) => string | undefined;
}

export interface Peer {
  readonly port: number;
  /** Names that were bound as, in order. */
  readonly binds: readonly string[];
  close(): Promise<void>;
}

interface Element {
  readonly tag: number;
  readonly value: Buffer;
}

const SUCCESS = 0;
const PROTOCOL_ERROR = 2;
const INVALID_CREDENTIALS = 49;

export async function startPeer({ accounts, whoAmI }: PeerOptions): Promise<Peer> {
  const binds: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    let bound: PeerAccount | undefined;
    let rest: Buffer = Buffer.alloc(0);
    const answer = (id: Buffer, tag: number, ...parts: Buffer[]): void =>
      void socket.write(element(0x30, element(0x02, id), element(tag, ...parts)));
    socket.on('data', (data: Buffer) => {
      rest = Buffer.concat([rest, data]);
      for (let message = first(rest); message !== undefined; message = first(rest)) {
        rest = rest.subarray(message.end);
        const [id, operation] = children(message.value);
        if (id === undefined || operation === undefined) return void socket.destroy();
        const parts = children(operation.value);
        switch (operation.tag) {
          case 0x60: {
            const [name, password] = [text(parts[1]), text(parts[2])];
            binds.push(name);
            const account = accounts.find(
              (one) => namesOf(one).includes(name.toLowerCase()) && one.password === password,
            );
            const data = account === undefined ? '52e' : account.refusal;
            bound = data === undefined ? account : undefined;
            const why = data === undefined ? '' : `80090308: LdapErr: DSID-0C0903A9, data ${data}, v1db1`;
            answer(id.value, 0x61, result(data === undefined ? SUCCESS : INVALID_CREDENTIALS, why));
            break;
          }
          case 0x63: {
            const [base, scope, filter] = [text(parts[0]).toLowerCase(), parts[1]?.value[0], parts[6]];
            const isBelow = ({ dn }: PeerAccount) =>
              scope === 0 ? dn.toLowerCase() === base : dn.toLowerCase().endsWith(base) && base !== '';
            for (const one of accounts)
              if (filter !== undefined && isBelow(one) && matches(filter, one)) answer(id.value, 0x64, entry(one));
            answer(id.value, 0x65, result(SUCCESS));
            break;
          }
          case 0x77: {
            const said = whoAmI(bound);
            if (said === undefined) answer(id.value, 0x78, result(PROTOCOL_ERROR, 'not supported'));
            else answer(id.value, 0x78, result(SUCCESS), element(0x8b, Buffer.from(said)));
            break;
          }
          default:
            socket.end();
        }
      }
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    binds,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function namesOf({ dn, attributes }: PeerAccount): readonly string[] {
  return [dn, attributes['userprincipalname'], attributes['msds-principalname']]
    .filter((name) => typeof name === 'string')
    .map((name) => name.toLowerCase());
}

function matches(filter: Element, account: PeerAccount): boolean {
  const inner = (): readonly Element[] => children(filter.value);
  switch (filter.tag) {
    case 0xa0:
      return inner().every((one) => matches(one, account));
    case 0xa1:
      return inner().some((one) => matches(one, account));
    case 0xa2:
      return !inner().every((one) => matches(one, account));
    case 0xa3: {
      const [name, value] = inner().map(text);
      return String(account.attributes[name?.toLowerCase() ?? ''] ?? '').toLowerCase() === value?.toLowerCase();
    }
    case 0x87:
      return Object.hasOwn(account.attributes, filter.value.toString().toLowerCase());
    default:
      return false;
  }
}

function entry({ dn, attributes }: PeerAccount): Buffer {
  const values = Object.entries(attributes).map(([name, value]) =>
    element(0x30, element(0x04, Buffer.from(name)), element(0x31, element(0x04, Buffer.from(value)))),
  );
  return Buffer.concat([element(0x04, Buffer.from(dn)), element(0x30, ...values)]);
}

function result(code: number, message = ''): Buffer {
  return Buffer.concat([element(0x0a, Buffer.from([code])), element(0x04), element(0x04, Buffer.from(message))]);
}

function text(one: Element | undefined): string {
  return one?.value.toString('utf8') ?? '';
}

function element(tag: number, ...parts: readonly Buffer[]): Buffer {
  const value = Buffer.concat(parts);
  const length = value.length < 0x80 ? [value.length] : [0x82, value.length >> 8, value.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), value]);
}

/** The first whole element; undefined when not all of it is there. */
function first(bytes: Buffer): (Element & { readonly end: number }) | undefined {
  const [tag, short] = [bytes[0], bytes[1]];
  if (tag === undefined || short === undefined) return undefined;
  const more = short < 0x80 ? 0 : short & 0x7f;
  if (bytes.length < 2 + more) return undefined;
  const start = 2 + more;
  const end = start + (more === 0 ? short : bytes.readUIntBE(2, more));
  return bytes.length < end ? undefined : { tag, value: bytes.subarray(start, end), end };
}

function children(bytes: Buffer): readonly Element[] {
  const found: Element[] = [];
  let rest = bytes;
  for (let one = first(rest); one !== undefined; one = first(rest)) {
    found.push(one);
    rest = rest.subarray(one.end);
  }
  return found;
}
