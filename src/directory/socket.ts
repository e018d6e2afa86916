/** The way to a server: TCP, and TLS over it. What this gives is either plain on purpose or TLS whose certificate names the host. */

import { connect, isIP, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect as connectTls,
  type PeerCertificate,
  type SecureContext,
  TLSSocket,
} from 'node:tls';
import { Fault } from '../domain/errors.ts';
import type { Deadline } from './deadline.ts';
import { reasonOf } from './faults.ts';
import type { DirectoryUrl } from './settings.ts';
import { askForTls } from './start-tls.ts';

/** How far it came, for who wants to know; see `TestStep`. */
export type Observer = (stage: 'connect' | 'tls', detail: string, data?: Readonly<Record<string, unknown>>) => void;

export interface Route {
  readonly url: DirectoryUrl;
  readonly startTls: boolean;
  /** Whose certificates are believed; undefined where TLS is not used. */
  readonly trust: SecureContext | undefined;
}

/** A failure after TCP stood: a matter of TLS. */
export class TlsFault extends Fault {}

/** @throws Fault; a TlsFault when TLS is why */
export async function openSocket(route: Route, deadline: Deadline, observe?: Observer): Promise<Socket> {
  const { url, startTls } = route;
  const address = { host: url.host, port: url.port, noDelay: true };
  const opened = url.secure ? protectedBy(route, address) : connect(address);
  const cancel = deadline.onPassing(() => opened.destroy(deadline.fault()));
  try {
    await event(opened, 'connect');
    observe?.('connect', `connected to ${url.text}`, { address: opened.remoteAddress, port: opened.remotePort });
    if (opened instanceof TLSSocket) return await secured(url, opened, observe);
    return startTls ? await upgraded(route, opened, deadline, observe) : opened;
  } catch (error) {
    opened.destroy();
    if (error instanceof TlsFault) throw error;
    throw new Fault(`${url.text}: ${reasonOf(error)}`);
  } finally {
    cancel();
  }
}

/** TLS whose certificate must be by an authority that is trusted, and name the host of the URL. */
function protectedBy({ url, trust }: Route, way: ConnectionOptions): TLSSocket {
  const socket: TLSSocket = connectTls({
    ...way,
    ...(isIP(url.host) === 0 ? { servername: url.host } : {}),
    ...(trust === undefined ? {} : { secureContext: trust }),
    rejectUnauthorized: true,
    checkServerIdentity: () => wrongName(socket, url.host),
  });
  // Node reads every certificate of the chain into an object for the check of the name, which costs a fifth of what TLS costs. The chain
  // is verified by then, and the check above reads what it needs by itself.
  return Object.defineProperty(socket, 'getPeerCertificate', { value: () => undefined });
}

/** RFC 6125: undefined when the certificate is one of the host. */
function wrongName(socket: TLSSocket, host: string): Error | undefined {
  const certificate = socket.getPeerX509Certificate();
  const name = isIP(host) === 0 ? certificate?.checkHost(host) : certificate?.checkIP(host);
  // Says why.
  return name === undefined ? checkServerIdentity(host, peerCertificate(socket)) : undefined;
}

function peerCertificate(socket: TLSSocket): PeerCertificate {
  return TLSSocket.prototype.getPeerCertificate.call(socket, false);
}

/** StartTLS, and TLS from then on. */
async function upgraded(
  route: Route,
  plain: Socket,
  deadline: Deadline,
  observe: Observer | undefined,
): Promise<TLSSocket> {
  try {
    await askForTls(plain);
  } catch (error) {
    throw new TlsFault(`${route.url.text}: ${reasonOf(error)}`);
  }
  const socket = protectedBy(route, { socket: plain, host: route.url.host });
  const cancel = deadline.onPassing(() => socket.destroy(deadline.fault()));
  try {
    return await secured(route.url, socket, observe);
  } finally {
    cancel();
  }
}

async function secured(url: DirectoryUrl, socket: TLSSocket, observe: Observer | undefined): Promise<TLSSocket> {
  try {
    await event(socket, 'secureConnect');
    if (!isVerified(socket)) throw new Error('the connection is not protected');
  } catch (error) {
    throw new TlsFault(`${url.text}: ${reasonOf(error)}`);
  }
  // Reading the certificate once more costs a tenth of what TLS costs, so it is read only for who wants to see it.
  if (observe !== undefined) {
    const { subject, issuer, valid_to: validTo } = peerCertificate(socket);
    observe('tls', `${socket.getProtocol()}, certificate of ${url.host} verified`, {
      protocol: socket.getProtocol(),
      subject: subject?.CN,
      issuer: issuer?.CN,
      validTo,
    });
  }
  return socket;
}

/** Whether what is written to the socket is read by nobody but the host of the URL. */
export function isVerified(socket: Socket): boolean {
  return socket instanceof TLSSocket && socket.encrypted && socket.authorized && !socket.destroyed;
}

/** Waits for it; rejects when the socket fails or closes first. */
function event(socket: Socket, name: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void): void => {
      socket.off(name, arrived).off('error', failed).off('close', closed);
      // Whatever fails between here and the next listener shows when the socket is used.
      socket.on('error', () => undefined);
      act();
    };
    const arrived = (): void => settle(resolve);
    const failed = (error: Error): void => settle(() => reject(error));
    const closed = (): void => settle(() => reject(new Error('the server closed the connection')));
    socket.on(name, arrived).on('error', failed).on('close', closed);
  });
}
